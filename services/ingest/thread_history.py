"""Which threads' replies are to be read, and how far each is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import ClassVar

from psycopg.rows import TupleRow

from services.ingest.channel_history import FULL, ChannelReading
from services.ingest.history_pages import Root
from services.ingest.history_retry import Retry
from services.ingest.pacing import REPLIES
from services.runtime import db, sql

_STATEMENTS = sql.load("services.ingest", "thread_history.sql")


@dataclass(frozen=True)
class ThreadReading:
    """A thread whose next page is to be read, as it stood when it was chosen."""

    channel_id: str
    root_ts: str
    cursor: str
    oldest_ts: str
    read_up_to_ts: str
    is_again: bool
    attempts: int


@dataclass(frozen=True)
class Threads:
    """The threads of one workspace inside a transaction. ``now`` None: the database's clock."""

    connection: db.Connection
    workspace_id: str
    now: datetime | None
    method: ClassVar[str] = REPLIES

    async def next(self) -> ThreadReading | None:
        """A thread not begun, the newest first; without one, that which waited longest."""
        row = await self._one("next_thread", {})
        return ThreadReading(*row) if row else None

    async def seconds_to_next(self) -> float | None:
        """When a thread or channel that failed is due again; None when nothing is left to read."""
        row = await self._one("seconds_to_next", {})
        return max(0.0, row[0]) if row and row[0] is not None else None

    async def expect(self, channel: ChannelReading, id_prefix: str, roots: Sequence[Root]) -> None:
        """Record the threads of a page, to be read where there is anything to read.

        In a pass over what is recent that is where the stored replies are not what the root tells
        of, and it told otherwise when they were last read. ``id_prefix`` is that of the channel's
        message ids.
        """
        await self.connection.execute(
            _STATEMENTS["expect"],
            {
                **self._key,
                "channel_id": channel.channel_id,
                "id_prefix": id_prefix,
                "again": channel.is_again,
                "everything": channel.open_pass == FULL,
                "root_ts": [root.ts for root in roots],
                "reply_counts": [root.reply_count for root in roots],
                "latest_replies": [root.latest_reply_ts for root in roots],
            },
        )

    async def holds(self, thread: ThreadReading) -> bool:
        """Whether a thread still stands where it stood; nobody moves it until the commit."""
        return await self._one("hold", asdict(thread)) is not None

    async def move(self, thread: ThreadReading, cursor: str, up_to_ts: str) -> None:
        """A page was stored: the next one begins at the cursor, or above ``up_to_ts``."""
        page = {"next_cursor": cursor, "up_to_ts": up_to_ts}
        await self._run("move", {**asdict(thread), **page})

    async def end(self, thread: ThreadReading) -> None:
        """All replies are read."""
        await self._run("end", asdict(thread))

    async def forget_cursor(self, thread: ThreadReading) -> None:
        """Go on above what is read instead of at the cursor."""
        await self._run("forget_cursor", asdict(thread))

    async def fail(self, thread: ThreadReading, error: str, retry: Retry) -> None:
        """A page could not be read."""
        await self._run("fail", {**asdict(thread), **asdict(retry), "error": error})

    async def let_others_go_first(self, thread: ThreadReading) -> None:
        """A thread had its turn without a page."""
        await self._run("let_others_go_first", asdict(thread))

    async def _one(self, statement: str, parameters: dict[str, object]) -> TupleRow | None:
        return await db.fetch_one(
            self.connection, _STATEMENTS[statement], {**parameters, **self._key}
        )

    async def _run(self, statement: str, parameters: dict[str, object]) -> None:
        await self.connection.execute(_STATEMENTS[statement], {**parameters, **self._key})

    @property
    def _key(self) -> dict[str, object]:
        return {"workspace_id": self.workspace_id, "now": self.now}
