"""A workspace whose history is read: a Slack for tests, the worker's handler, a stepped clock."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from random import Random
from typing import Any

import pytest
from slack_sdk.web.async_client import AsyncWebClient

from services.ingest import queue
from services.ingest.backfill import handle_backfill
from services.ingest.backfill_jobs import ask_for_listing
from services.ingest.directory import ChannelKind
from services.ingest.history_run import Backfill
from services.ingest.known_channels import ask_for_history
from services.ingest.known_channels import known_channel as know_channel
from services.ingest.queue import Job
from services.ingest.reconcile import ask_for_what_is_due
from services.ingest.resources import Resources
from services.ingest.slack_history import SlackHistory
from services.runtime import db
from tests.fakes.slack_server import SlackControl, SlackServer
from tests.fakes.slack_server.records import Call
from tests.fakes.slack_server.state import Installation
from tests.integration.ingest_fixtures import Rows
from tests.integration.slack_harbour import SteppedClock
from tests.waiting import until

WORKSPACE = "W"
HISTORY = "conversations.history"
REPLIES = "conversations.replies"
TICKS = 1024


@dataclass
class Reader:
    """The workspace Harbour with Ines, Tomo and the bot; jobs run when told, time when waited."""

    slack: SlackServer
    control: SlackControl
    installation: Installation
    clock: SteppedClock
    backfill: Backfill
    rows: Rows
    random: Random

    @property
    def team_id(self) -> str:
        return self.installation.team_id

    def ts(self, seconds_ago: float, micro: int = 100) -> str:
        """A ts so long before now, exact to the microsecond."""
        return f"{int(self.clock.now - seconds_ago)}.{micro:06}"

    def channel(self, name: str, with_bot: bool = True) -> str:
        """A public channel; its id."""
        members = ["Ines", "Tomo"]
        if with_bot:
            members.append(self.installation.bot_user_id)
        return self.control.add_channel(name, members=members).channel_id

    def post(self, channel: str, text: str, seconds_ago: float, **more: Any) -> str:
        """A message of which no event tells; its ts."""
        ts = more.pop("ts", "") or self.ts(seconds_ago)
        return self.control.post(channel, "Ines", text, ts=ts, silent=True, **more).ts

    def fill(self, channel: str, count: int, step_seconds: float = 60.0) -> list[str]:
        """Messages outside threads, the newest a minute old; their ts, newest first."""
        steps = range(1, count + 1)
        return [self.post(channel, f"{channel} {n}", n * step_seconds) for n in steps]

    async def list_all(self) -> None:
        """What happens at an install."""
        async with db.writing(self.backfill.resources.pool, WORKSPACE) as connection:
            await ask_for_listing(connection, WORKSPACE)

    async def take_up(self, channel_id: str) -> None:
        """What happens when the bot joins a channel."""
        async with db.writing(self.backfill.resources.pool, WORKSPACE) as connection:
            await know_channel(connection, WORKSPACE, channel_id, ChannelKind.PUBLIC)
            await ask_for_history(connection, WORKSPACE, channel_id)

    async def reconcile(self) -> None:
        """A day later: ask for what is due."""
        self.clock.now += 86_400.0
        await ask_for_what_is_due(self.backfill.resources, self.backfill.now)

    async def work(self, end: float = float("inf")) -> None:
        """Run jobs until none is left, or until a time; waiting moves the clock."""
        while self.clock.now < end:
            jobs = await queue.claim(self.backfill.resources.queue_pool, ("backfill",))
            if not jobs and not self._wait():
                return
            for job in jobs:
                await self.run(job)

    async def kill_during(self, method: str, call: int) -> None:
        """Kill the worker while Slack answers the nth next call of a method; its claim lapses."""
        self.control.add_fault(method, "slow", on_calls=[call], seconds=600.0)
        before = len(self.control.calls(method))
        working = asyncio.create_task(self.work())
        await until(lambda: len(self.control.calls(method)) >= before + call)
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)
        self.control.clear_faults()
        self.rows.execute("UPDATE jobs SET heartbeat_at = '-infinity' WHERE state = 'running'")

    async def run(self, job: Job) -> None:
        """One run of a job, to a good end; it takes about a millisecond."""
        pass_time(self.clock, 1 / TICKS)
        await handle_backfill(self.backfill, job)
        await queue.complete(self.backfill.resources.queue_pool, job)

    def _wait(self) -> bool:
        ready = self.rows.all(
            "UPDATE jobs SET run_at = now() FROM (SELECT job_id, run_at AS due FROM jobs "
            "WHERE kind = 'backfill' AND state = 'ready' ORDER BY run_at LIMIT 1) AS first "
            "WHERE jobs.job_id = first.job_id "
            "RETURNING greatest(0, extract(epoch FROM due - now()))::float8"
        )
        if ready:
            pass_time(self.clock, ready[0][0])
        return bool(ready)

    def calls(self, method: str, channel: str = "") -> list[Call]:
        """Calls that Slack answered with rows."""
        return [
            call
            for call in self.control.calls(method, channel=channel)
            if call.status == 200 and not call.error
        ]

    def stored(self, channel_id: str = "") -> list[str]:
        """ts of stored messages, oldest first."""
        return [
            row[0]
            for row in self.rows.all(
                "SELECT ts FROM messages WHERE %s IN ('', channel_id) ORDER BY ts", channel_id
            )
        ]

    def states(self) -> dict[str, str]:
        """Where each channel's history stands, by name."""
        return dict(
            self.rows.all(
                "SELECT c.name, h.state FROM channel_history h "
                "JOIN channels c USING (workspace_id, channel_id)"
            )
        )

    def threads(self) -> dict[str, tuple[str, str]]:
        """State and error of each thread by its root's ts."""
        found = self.rows.all("SELECT root_ts, state, last_error FROM thread_history")
        return {row[0]: (row[1], row[2]) for row in found}


@pytest.fixture
async def reader(resources: Resources, rows: Rows) -> AsyncIterator[Reader]:
    """Installed, nothing listed or read yet; Slack's pace is unlimited, ours is the default."""
    clock = SteppedClock()
    async with SlackServer(clock=clock, random=Random(7)) as slack:
        control = slack.control
        control.add_team("Harbour")
        for name in ("Ines", "Tomo"):
            control.add_user(name)
        installation = control.install(installer="Ines")
        control.use_tier("strict")
        # Nobody hears of what happens: history alone has to find it.
        control.hold_events()
        install(rows, installation)
        yield Reader(
            slack,
            control,
            installation,
            clock,
            stepped_backfill(resources, slack, installation, clock),
            rows,
            Random(11),
        )


def stepped_backfill(
    resources: Resources, slack: SlackServer, installation: Installation, clock: SteppedClock
) -> Backfill:
    """The handler's dependencies with a clock that moves while one waits."""

    async def open_slack(workspace_id: str) -> SlackHistory:
        client = AsyncWebClient(
            installation.access_token, base_url=slack.api_url, retry_handlers=[]
        )
        return SlackHistory(client, installation.team_id)

    async def sleep(seconds: float) -> None:
        pass_time(clock, seconds)

    return Backfill(
        resources, open_slack, lambda: datetime.fromtimestamp(clock.now, UTC), sleep, clock
    )


def pass_time(clock: SteppedClock, seconds: float) -> None:
    """Move a clock on in steps that a float holds exactly: a minute is never a little less."""
    clock.now = math.ceil((clock.now + seconds) * TICKS) / TICKS


def install(rows: Rows, installation: Installation, token: bytes = b"unused") -> None:
    """The workspace of an installation, serving an empty generation."""
    rows.execute(
        "INSERT INTO workspaces (workspace_id, source, team_id) VALUES (%s, 'slack', %s)",
        WORKSPACE,
        installation.team_id,
    )
    rows.execute(
        "INSERT INTO installations (workspace_id, installation_id, team_id, bot_user_id, bot_id, "
        "bot_token) VALUES (%s, 'i', %s, %s, %s, %s)",
        WORKSPACE,
        installation.team_id,
        installation.bot_user_id,
        installation.bot_id,
        token,
    )
    rows.execute("INSERT INTO embedders VALUES ('f', 'local', 'local', 'm', 'r', 384)")
    rows.execute(
        "INSERT INTO generations (workspace_id, generation_id, source, state, chunker_version, "
        "embedder_fingerprint, width, promoted_at) VALUES (%s, 'g', 'slack', 'active', '1', 'f', "
        "384, now())",
        WORKSPACE,
    )


def gaps(calls: Iterable[Call]) -> list[float]:
    """Seconds between calls that follow each other."""
    times = [call.at for call in calls]
    return [after - before for before, after in pairwise(times)]
