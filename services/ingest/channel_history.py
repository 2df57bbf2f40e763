"""How far the history of channels is read: their rows, and whose turn is next."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime
from typing import ClassVar

import psycopg
from psycopg.rows import TupleRow

from services.ingest.history_retry import Retry
from services.ingest.kept_after import read_kept_after
from services.ingest.pacing import HISTORY
from services.runtime import db, sql

# How far back a complete channel is read again, and further where nobody looked for longer than
# that. An edit or deletion of an older message that no event told of stays unknown.
RECENT_DAYS = 7
RECONCILE_HOURS = 24
# Processes may restart, and connections break, more often than Slack's pace allows to look again.
RECONCILE_GAP_MINUTES = 10

FULL = "full"
RECENT = "recent"

_STATEMENTS = sql.load("services.ingest", "channel_history.sql")


@dataclass(frozen=True)
class ChannelReading:
    """A channel whose next page is to be read, as it stood when it was chosen."""

    channel_id: str
    state: str
    pass_number: int
    open_pass: str
    latest_ts: str
    oldest_ts: str
    cursor: str
    read_down_to_ts: str
    attempts: int

    @property
    def is_again(self) -> bool:
        """Whether everything was read before."""
        return self.state == "complete"


@dataclass(frozen=True)
class Channels:
    """The channels of one workspace inside a transaction. ``now`` None: the database's clock."""

    connection: db.Connection
    workspace_id: str
    now: datetime | None
    method: ClassVar[str] = HISTORY

    async def next(self) -> ChannelReading | None:
        """The channel that waited longest for its next page, its pass begun.

        First readings and repeated ones take turns, so that neither waits for all of the other.
        """
        row = await self._one("next_channel", {})
        if row is None:
            return None
        channel = ChannelReading(*row)
        if channel.open_pass:
            return channel
        return await self.begin_pass(channel.channel_id, RECENT if channel.is_again else FULL)

    async def begin_pass(self, channel_id: str, kind: str) -> ChannelReading | None:
        """Begin to read a channel from its newest message, down to what is kept of it."""
        kept_after = await read_kept_after(self.connection, self.workspace_id, [channel_id])
        oldest_ts = kept_after[channel_id]
        days = RECENT_DAYS if kind == RECENT else None
        row = await self._one(
            "begin_pass",
            {"channel_id": channel_id, "kind": kind, "oldest_ts": oldest_ts, "days": days},
        )
        return ChannelReading(*row) if row else None

    async def take_up(self, channel_id: str, begins_at: datetime | None) -> ChannelReading | None:
        """Have a channel read that was not, that failed or that the app had left.

        What it was before; None: nothing was known of it.
        """
        row = await self._one("read_channel", {"channel_id": channel_id})
        await self._run("take_up", {"channel_id": channel_id, "begins_at": begins_at})
        return ChannelReading(*row) if row else None

    async def read_all_again(self) -> int:
        """Begin a full pass of each channel that was read; how many the app is in."""
        rows = await self._all("read_channels")
        for channel in (ChannelReading(*row) for row in rows):
            if channel.is_again and channel.open_pass != FULL:
                await self.begin_pass(channel.channel_id, FULL)
        return len(rows)

    async def reconcile_soon(self, channel_id: str = "") -> int:
        """Have complete channels, or one, read again at once; how many there are.

        Not within ten minutes of the last time, however often somebody asks.
        """
        given = {"channel_id": channel_id, "minutes": RECONCILE_GAP_MINUTES}
        cursor = await self._run("reconcile_soon", given)
        return cursor.rowcount

    async def holds(self, channel: ChannelReading) -> bool:
        """Whether a channel still stands where it stood; nobody moves it until the commit."""
        return await self._one("hold", asdict(channel)) is not None

    async def move(
        self, channel: ChannelReading, cursor: str, down_to_ts: str, messages: int
    ) -> None:
        """A page was stored: the next one begins at the cursor, or below ``down_to_ts``."""
        page = {"next_cursor": cursor, "down_to_ts": down_to_ts, "messages": messages}
        await self._run("move", {**asdict(channel), **page})

    async def end_pass(self, channel: ChannelReading) -> None:
        """The pass in progress reached its end; the channel is due again in a day."""
        await self._run("end_pass", {**asdict(channel), "hours": RECONCILE_HOURS})

    async def forget_cursor(self, channel: ChannelReading) -> None:
        """Go on below what is read instead of at the cursor."""
        await self._run("forget_cursor", asdict(channel))

    async def fail(self, channel: ChannelReading, error: str, retry: Retry) -> None:
        """A page could not be read."""
        await self._run("fail", {**asdict(channel), **asdict(retry), "error": error})

    async def let_others_go_first(self, channel: ChannelReading) -> None:
        """A channel had its turn without a page."""
        await self._run("let_others_go_first", asdict(channel))

    async def leave(self, channel_id: str, error: str) -> None:
        """The app is not in the channel any more: nothing more is read of it."""
        await self._run("leave", {"channel_id": channel_id, "error": error})

    async def stop_all(self, error: str) -> None:
        """Nothing can be read of any channel until the app's token is valid again."""
        await self._run("stop_all", {"error": error})

    async def resume_all(self) -> None:
        """The app's token is valid."""
        await self._run("resume_all", {})

    async def _one(self, statement: str, parameters: dict[str, object]) -> TupleRow | None:
        return await (await self._run(statement, parameters)).fetchone()

    async def _all(self, statement: str) -> list[TupleRow]:
        return await (await self._run(statement, {})).fetchall()

    async def _run(
        self, statement: str, parameters: dict[str, object]
    ) -> psycopg.AsyncCursor[TupleRow]:
        key = {"workspace_id": self.workspace_id, "now": self.now}
        return await self.connection.execute(_STATEMENTS[statement], {**parameters, **key})
