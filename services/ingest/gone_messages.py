"""Stored messages that Slack no longer shows where it showed what stands around them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from services.ingest.timestamps import instant_of
from services.runtime import db, sql

# A message younger than this when Slack was asked may be missing from its answer.
UNCERTAIN_SECONDS = 60

_STATEMENTS = sql.load("services.ingest", "gone_messages.sql")


@dataclass(frozen=True)
class Shown:
    """A stretch that a page shows without a gap, between two ts; empty: as far as there is any.

    Both bounds are outside it. ``asked_at`` is when Slack was asked.
    """

    above_ts: str
    below_ts: str
    ts: Sequence[str]
    asked_at: datetime

    @property
    def parameters(self) -> dict[str, object]:
        """As the statements take them."""
        until = self.asked_at - timedelta(seconds=UNCERTAIN_SECONDS)
        below = min(until, instant_of(self.below_ts)) if self.below_ts else until
        above = instant_of(self.above_ts) if self.above_ts else None
        return {"above": above, "below": below, "shown": list(self.ts)}


async def gone_from_channel(
    connection: db.Connection, workspace_id: str, channel_id: str, shown: Shown
) -> list[tuple[str, str]]:
    """Messages, as (id, ts), that a channel's history would show. Replies are not among them."""
    key = {"workspace_id": workspace_id, "channel_id": channel_id}
    rows = await db.fetch_all(
        connection, _STATEMENTS["gone_from_channel"], {**key, **shown.parameters}
    )
    return [(row[0], row[1]) for row in rows]


async def gone_from_thread(
    connection: db.Connection, workspace_id: str, root_id: str, shown: Shown
) -> list[str]:
    """Ids of replies that a thread would show."""
    key = {"workspace_id": workspace_id, "root_id": root_id}
    rows = await db.fetch_all(
        connection, _STATEMENTS["gone_from_thread"], {**key, **shown.parameters}
    )
    return [row[0] for row in rows]
