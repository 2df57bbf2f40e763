"""A backfill survives 20 kills of its worker and reads no stored page again."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random

import pytest
from cryptography.fernet import Fernet
from slack_sdk.web.async_client import AsyncWebClient

from services.ingest.backfill import handle_backfill
from services.ingest.backfill_jobs import ask_for_listing
from services.ingest.history_run import Backfill
from services.ingest.job_loop import JobLoop
from services.ingest.resources import Resources
from services.ingest.slack_history import SlackHistory
from services.ingest.token_cipher import TokenCipher
from services.runtime import db
from tests.fakes.slack_server import SlackControl, SlackServer
from tests.fakes.slack_server.state import Installation
from tests.integration.history_fixtures import HISTORY, REPLIES, WORKSPACE, install
from tests.integration.ingest_fixtures import Rows
from tests.waiting import until

CHANNELS = 40
ROOTS, THREADS, REPLIES_EACH = 95, 5, 6
MESSAGES = CHANNELS * (ROOTS + THREADS * REPLIES_EACH)
KILLS = 20
PROCESS_KILLS = 3
NEWEST = 1_700_000_000


@dataclass
class Busy:
    """5,000 messages in 40 channels; 50 ms between two calls of a method, there and here."""

    slack: SlackServer
    control: SlackControl
    installation: Installation
    rows: Rows

    def stored(self) -> dict[str, set[str]]:
        """ts of stored messages by channel."""
        found: dict[str, set[str]] = {}
        for channel_id, ts in self.rows.all("SELECT channel_id, ts FROM messages"):
            found.setdefault(channel_id, set()).add(ts)
        return found

    def has_read(self, pages: int) -> bool:
        """Whether so many pages were asked for."""
        return len(self.control.calls(HISTORY)) + len(self.control.calls(REPLIES)) >= pages

    def is_complete(self) -> bool:
        """Whether nothing is left to read."""
        channels = self.rows.all("SELECT state FROM channel_history")
        waiting = self.rows.one("SELECT count(*) FROM thread_history WHERE state <> 'complete'")
        return (
            len(channels) == CHANNELS
            and {row[0] for row in channels} == {"complete"}
            and (waiting == 0)
        )

    def served_again(self, from_call: int, stored: dict[str, set[str]]) -> set[str]:
        """Messages that were stored when call number ``from_call`` came, and were given out."""
        again: set[str] = set()
        for call in self.control.calls()[from_call:]:
            if call.method in (HISTORY, REPLIES):
                known = stored.get(call.arguments["channel"], set())
                # A page of a thread repeats its root.
                again |= (known & set(call.served)) - {call.arguments.get("ts", "")}
        return again


def fill(control: SlackControl, bot_user_id: str) -> None:
    """The 5,000 messages."""
    for number in range(CHANNELS):
        name = f"channel-{number}"
        control.add_channel(name, members=["Ines", bot_user_id])
        for root in range(ROOTS):
            ts = f"{NEWEST - 600 * root}.{number:06}"
            control.post(name, "Ines", f"message {root}", ts=ts, silent=True)
            for reply in range(REPLIES_EACH if root % 19 == 7 else 0):
                later = f"{NEWEST - 600 * root + 1 + reply}.{number:06}"
                control.post(name, "Ines", f"reply {reply}", ts=later, thread=ts, silent=True)


@pytest.fixture
async def busy(resources: Resources, rows: Rows) -> AsyncIterator[Busy]:
    async with SlackServer() as slack:
        control = slack.control
        control.add_team("Harbour")
        control.add_user("Ines")
        installation = control.install()
        fill(control, installation.bot_user_id)
        for method in (HISTORY, REPLIES):
            control.pace(method, 20, 1.0)
            control.set_page_cap(method, 15)
        install(rows, installation)
        rows.execute("UPDATE workspaces SET history_interval_seconds = 0.05")
        async with db.writing(resources.pool, WORKSPACE) as connection:
            await ask_for_listing(connection, WORKSPACE)
        yield Busy(slack, control, installation, rows)


def job_loop(busy: Busy, resources: Resources) -> JobLoop:
    async def open_slack(workspace_id: str) -> SlackHistory:
        client = AsyncWebClient(
            busy.installation.access_token, base_url=busy.slack.api_url, retry_handlers=[]
        )
        return SlackHistory(client, busy.installation.team_id)

    handler = partial(handle_backfill, Backfill(resources, open_slack))
    return JobLoop(resources.queue_pool, {"backfill": handler}, lambda: 0.0)


async def killed(working: asyncio.Task[None], busy: Busy) -> None:
    """End a worker where it stands; its claim has lapsed when the next one looks."""
    working.cancel()
    await asyncio.gather(working, return_exceptions=True)
    busy.rows.execute("UPDATE jobs SET heartbeat_at = '-infinity' WHERE state = 'running'")


async def test_twenty_kills_cost_a_page_each_at_most(busy: Busy, resources: Resources) -> None:
    random = Random(20)
    pages = CHANNELS * (-(-ROOTS // 15) + THREADS)
    looks: list[tuple[int, dict[str, set[str]]]] = []
    for kill in range(KILLS):
        working = asyncio.create_task(job_loop(busy, resources).run())
        target = pages * (kill + 1) // (KILLS + 2) + random.randrange(8)
        await until(partial(busy.has_read, target))
        await asyncio.sleep(random.random() / 20)
        await killed(working, busy)
        looks.append((len(busy.control.calls()), busy.stored()))
    working = asyncio.create_task(job_loop(busy, resources).run())
    await until(busy.is_complete)
    await killed(working, busy)
    assert sum(len(ts) for ts in busy.stored().values()) == MESSAGES == 5_000
    for from_call, stored in looks:
        assert busy.served_again(from_call, stored) == set()
    answered = [call for call in busy.control.calls() if not call.error]
    read = [call for call in answered if call.method in (HISTORY, REPLIES)]
    assert pages <= len(read) <= pages + KILLS


@contextmanager
def worker(
    database_url: str, busy: Busy, home: Path, key: str
) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "services.ingest.worker"],
        env={
            "PATH": os.environ["PATH"],
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            "RECALL_HOME": str(home),
            "DATABASE_URL": database_url,
            "RECALL_SLACK_API_URL": busy.slack.api_url,
            "RECALL_TOKEN_KEY": key,
        },
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


async def test_a_killed_worker_process_is_followed_by_one_that_goes_on(
    busy: Busy, database_url: str, tmp_path: Path
) -> None:
    """As the process is started: its token encrypted, its Slack named by the environment."""
    key = Fernet.generate_key().decode()
    token = TokenCipher((key,)).encrypt(busy.installation.access_token)
    busy.rows.execute("UPDATE installations SET bot_token = %s", token)
    busy.rows.execute("DELETE FROM generations")
    looks: list[tuple[int, dict[str, set[str]]]] = []
    for kill in range(PROCESS_KILLS):
        with worker(database_url, busy, tmp_path, key):
            target = 100 * (kill + 1)
            await until(partial(busy.has_read, target))
        looks.append((len(busy.control.calls()), busy.stored()))
    with worker(database_url, busy, tmp_path, key):
        await until(busy.is_complete)
    assert sum(len(ts) for ts in busy.stored().values()) == MESSAGES
    for from_call, stored in looks:
        assert busy.served_again(from_call, stored) == set()
