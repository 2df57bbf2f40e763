"""How far the history of a workspace's channels is read, and how long the rest will take."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime

from services.ingest.history_estimate import NextSlots, ThreadCalls, Unread, seconds_left
from services.ingest.pacing import HISTORY, REPLIES, Pace, Slots, read_pace
from services.ingest.timestamps import instant_of
from services.runtime import db, sql

_STATEMENTS = sql.load("services.ingest", "history_coverage.sql")


@dataclass(frozen=True)
class ChannelHistory:
    """One channel. ``read_down_to`` is of its first reading, None before its first page and after
    its end; ``error`` names what failed last, of the channel or else of one of its threads."""

    state: str
    read_down_to: datetime | None
    completed_at: datetime | None
    error: str
    threads_waiting: int
    threads_failed: int

    @property
    def has_work(self) -> bool:
        """Whether anything is left of its first reading or of its threads."""
        is_unread = self.completed_at is None and self.state != "left"
        return is_unread or bool(self.threads_waiting or self.threads_failed)


async def read_channel_histories(
    connection: db.Connection, workspace_id: str
) -> dict[str, ChannelHistory]:
    """By channel id; only channels with live history."""
    key = {"workspace_id": workspace_id}
    rows = await db.fetch_all(connection, _STATEMENTS["channel_histories"], key)
    return {
        channel_id: ChannelHistory(state, instant_of(down_to) if down_to else None, *rest)
        for channel_id, state, down_to, *rest in rows
    }


async def estimate_seconds_left(
    connection: db.Connection,
    workspace_id: str,
    default_pace: Pace,
    histories: Mapping[str, ChannelHistory],
    shown: Collection[str],
) -> float | None:
    """Seconds until all of the workspace is read, since its channels share one pace.

    None when nothing is left of the channels shown: what goes on elsewhere is no matter then. None
    too when nothing can be told.
    """
    if not any(histories[channel_id].has_work for channel_id in shown if channel_id in histories):
        return None
    pace = await read_pace(connection, workspace_id, default_pace)
    parameters = {"workspace_id": workspace_id, "page_size": pace.page_size}
    rows = await db.fetch_all(connection, _STATEMENTS["unread"], parameters)
    totals = await db.fetch_one(connection, _STATEMENTS["totals"], parameters)
    assert totals is not None, "totals is one row"
    is_stopped, pages_read, waiting, every = totals
    if is_stopped:
        return None
    channels = [Unread(*row) for row in rows]
    slots = Slots(connection, workspace_id, pace, None)
    ahead = NextSlots(await slots.wait_seconds(HISTORY), await slots.wait_seconds(REPLIES))
    calls = ThreadCalls(waiting, every)
    return seconds_left(channels, calls, pages_read, pace.interval_of(HISTORY), ahead)
