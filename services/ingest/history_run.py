"""What one run of a job of history works with."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass

from services.ingest.channel_history import Channels
from services.ingest.pacing import Clock, Slots, database_clock, read_pace
from services.ingest.queue import Job, still_holds
from services.ingest.resources import Resources
from services.ingest.slack_history import SlackHistory
from services.ingest.thread_history import Threads
from services.ingest.workspaces import changing
from services.runtime import db

# A slot so near is waited for; the worker's slot for history holds nobody else up meanwhile.
PATIENCE_SECONDS = 2.0

# The Slack of a workspace; None when no app is installed there.
OpenSlack = Callable[[str], Awaitable[SlackHistory | None]]


@dataclass(frozen=True)
class Backfill:
    """What reads history. Its three ways to tell or pass time are all real, or all stepped."""

    resources: Resources
    open_slack: OpenSlack
    now: Clock = database_clock
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    monotonic: Callable[[], float] = time.monotonic


@dataclass(frozen=True)
class Later:
    """The job is to go on with this payload after some seconds."""

    delay_seconds: float
    payload: Mapping[str, object]


@dataclass(frozen=True)
class Rows:
    """The rows of history inside one transaction."""

    connection: db.Connection
    slots: Slots
    channels: Channels
    threads: Threads


@dataclass(frozen=True)
class Run:
    """One run: its claim, and the Slack it reads."""

    backfill: Backfill
    job: Job
    slack: SlackHistory

    @property
    def workspace_id(self) -> str:
        """The workspace's id."""
        return self.job.workspace_id

    def looking(self) -> AbstractAsyncContextManager[Rows | None]:
        """A short transaction that chooses and reserves; None when the claim is lost."""
        return self._rows(db.writing(self.backfill.resources.pool, self.workspace_id))

    def storing(self) -> AbstractAsyncContextManager[Rows | None]:
        """A transaction that stores what Slack answered; None when the claim is lost."""
        return self._rows(changing(self.backfill.resources.pool, self.workspace_id))

    async def slot(self, method: str) -> float:
        """Wait for the next slot of a method. Not 0: it is so far away, and not taken."""
        async with self.looking() as rows:
            if rows is None:
                return PATIENCE_SECONDS
            away_seconds = await rows.slots.wait_seconds(method)
            wait_seconds = await rows.slots.reserve(method, PATIENCE_SECONDS)
        if wait_seconds is None:
            return away_seconds
        await self.backfill.sleep(wait_seconds)
        return 0.0

    @asynccontextmanager
    async def _rows(
        self, transaction: AbstractAsyncContextManager[db.Connection]
    ) -> AsyncIterator[Rows | None]:
        async with transaction as connection:
            held = await still_holds(connection, self.job)
            yield await self._rows_of(connection) if held else None

    async def _rows_of(self, connection: db.Connection) -> Rows:
        now, default = self.backfill.now(), self.backfill.resources.history_pace
        pace = await read_pace(connection, self.workspace_id, default)
        return Rows(
            connection,
            Slots(connection, self.workspace_id, pace, now),
            Channels(connection, self.workspace_id, now),
            Threads(connection, self.workspace_id, now),
        )
