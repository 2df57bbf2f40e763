"""What goes on beside the events: questions, a purge of another workspace, a history to read."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import grpc

from bench.memory import ImportFailedError
from bench.slack_export import write_export
from recall.gateway.v1 import gateway_pb2
from recall.ingest.v1 import ingest_pb2
from services.cli.connection import connect
from services.runtime.errors import from_rpc_error
from services.stack.stack import Stack
from tests.fakes.slack_server import RemoteControl

PURGED = "bench-purged"
PURGED_MEGABYTES = 1
ARCHIVE_CHANNELS, ARCHIVE_MESSAGES = 6, 300
QUESTION_PAUSE_SECONDS = 0.5
ASK_SECONDS = 30.0
PURGE_SECONDS = 300.0

Say = Callable[[str], None]


@dataclass
class Asked:
    """Questions that were answered or abstained from, and the reasons of those that failed."""

    milliseconds: list[float] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Purged:
    """``seconds`` from asking for the purge to its end; None when it did not end in time."""

    seconds: float | None
    deleted: Mapping[str, int]

    def described(self) -> str:
        """One line."""
        if self.seconds is None:
            return f"not finished within {PURGE_SECONDS:.0f} s"
        return f"{self.deleted.get('messages', 0)} messages deleted in {self.seconds:.1f} s"


def fill_purged(environ: Mapping[str, str], folder: Path, say: Say) -> None:
    """Import the workspace that is going to be purged. Raises ImportFailedError."""
    say("importing the workspace to purge")
    archive = folder / "purged.zip"
    write_export(archive, PURGED_MEGABYTES)
    command = (sys.executable, "-m", "services.cli", "import", str(archive))
    options = ("--workspace", PURGED, "--embedder", "local", "--no-wait", "--json")
    done = subprocess.run((*command, *options), env=dict(environ), stdout=subprocess.DEVNULL)
    if done.returncode != 0:
        raise ImportFailedError("The import failed (see above).")


def fill_archive(slack: RemoteControl) -> tuple[str, int]:
    """A team with a history and the app's bot not yet in it; its id and how many messages."""
    team_id = slack.call("add_team", name="Archive")["team_id"]
    slack.call("add_user", name="Clerk", team=team_id)
    # The bot's id is derived from the team's, so the channels can have it before it is installed.
    bot = slack.call("install", team=team_id)["bot_user_id"]
    for number in range(ARCHIVE_CHANNELS):
        name = f"archive-{number}"
        slack.call("add_channel", name=name, team=team_id, members=["Clerk", bot])
        for line in range(ARCHIVE_MESSAGES // ARCHIVE_CHANNELS):
            text = f"Entry {line} of the archive {number}."
            slack.call("post", channel=name, user="Clerk", text=text, team=team_id, silent=True)
    return team_id, ARCHIVE_MESSAGES


async def ask_until(over: asyncio.Event, stack: Stack, workspace_id: str) -> Asked:
    """Ask the workspace that the events go to, one question after the other."""
    asked = Asked()
    async with connect(stack.environ) as peers:
        number = 0
        while not over.is_set():
            number += 1
            request = gateway_pb2.AskRequest(
                reader=gateway_pb2.Reader(workspace_id=workspace_id),
                question=f"what does note {number * 7} say about the berth?",
            )
            begin = time.monotonic()
            try:
                async for _ in peers.gateway.Ask(request, timeout=ASK_SECONDS):
                    pass
            except grpc.aio.AioRpcError as error:
                asked.failed.append(from_rpc_error(error).reason_name)
            else:
                asked.milliseconds.append((time.monotonic() - begin) * 1000)
            await asyncio.sleep(QUESTION_PAUSE_SECONDS)
    return asked


async def purge(stack: Stack, after_seconds: float) -> Purged:
    """Purge the imported workspace once some time has passed."""
    await asyncio.sleep(after_seconds)
    async with connect(stack.environ) as peers:
        begin = time.monotonic()
        asked = await peers.ingest.PurgeWorkspace(
            ingest_pb2.PurgeWorkspaceRequest(workspace_id=PURGED)
        )
        wanted = ingest_pb2.GetPurgeRequest(workspace_id=PURGED, purge_id=asked.purge_id)
        while time.monotonic() - begin < PURGE_SECONDS:
            report = await peers.ingest.GetPurge(wanted)
            if report.is_finished:
                return Purged(time.monotonic() - begin, dict(report.deleted))
            await asyncio.sleep(0.2)
    return Purged(None, {})
