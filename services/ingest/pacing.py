"""When each Slack method may be called next for a workspace, shared by all workers.

A caller reserves the next slot of a method in a transaction of its own and waits for it outside.
A slot that is far away is not reserved: whoever comes back then takes it. Slack's own word about
the pace, a 429, moves the slots of that one method and workspace.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from services.runtime import db, sql

HISTORY = "conversations.history"
REPLIES = "conversations.replies"
CHANNELS = "users.conversations"
CHANNEL = "conversations.info"
PEOPLE = "users.list"

# Slack's tiers 2 and 3: 20 and 50 calls a minute.
_TIER_SECONDS = {CHANNELS: 1.2, CHANNEL: 1.2, PEOPLE: 3.0}

FLOOR_SECONDS = 1.0
# What we add up to by ourselves when Slack names no time.
CAP_SECONDS = 300.0
# What is obeyed at most; a longer one is a mistake of whoever answers in Slack's place.
TOLD_CAP_SECONDS = 3600.0

# The instant to go by; None is the database's clock, the one that all workers share.
Clock = Callable[[], datetime | None]

_STATEMENTS = sql.load("services.ingest", "pacing.sql")


def database_clock() -> None:
    """The database's clock."""


@dataclass(frozen=True)
class Pace:
    """Seconds between two calls of a history method, and messages a page."""

    interval_seconds: float = 60.0
    page_size: int = 15

    def interval_of(self, method: str) -> float:
        """Seconds between two calls of a method."""
        return _TIER_SECONDS.get(method, self.interval_seconds)


def hold_off_seconds(told_seconds: float | None, refusals: int, jitter: float) -> float:
    """How long a method rests after a 429, at least a second.

    As long as Slack says; where it says nothing, or 0, ``2 ** refusals`` seconds and up to half as
    much again by ``jitter`` in [0, 1). ``refusals`` counts the 429s in a row before this one.
    """
    if told_seconds is not None and told_seconds > 0:
        return min(TOLD_CAP_SECONDS, max(FLOOR_SECONDS, told_seconds))
    return min(CAP_SECONDS, FLOOR_SECONDS * 2.0 ** min(refusals, 20)) * (1 + jitter / 2)


async def read_pace(connection: db.Connection, workspace_id: str, default: Pace) -> Pace:
    """The pace in force: the workspace's settings, else the process's."""
    row = await db.fetch_one(connection, _STATEMENTS["read_pace"], {"workspace_id": workspace_id})
    interval_seconds, page_size = row or (None, None)
    return Pace(interval_seconds or default.interval_seconds, page_size or default.page_size)


@dataclass(frozen=True)
class Slots:
    """The slots of one workspace inside a transaction."""

    connection: db.Connection
    workspace_id: str
    pace: Pace
    now: datetime | None

    async def wait_seconds(self, method: str) -> float:
        """How far the next free slot of a method is away."""
        row = await db.fetch_one(self.connection, _STATEMENTS["look"], self._key(method))
        return float(row[0]) if row else 0.0

    async def reserve(self, method: str, patience_seconds: float) -> float | None:
        """Take the next slot if it is at most so far away; how far it is. None: not taken."""
        parameters = {
            **self._key(method),
            "interval_seconds": self.pace.interval_of(method),
            "patience_seconds": patience_seconds,
        }
        row = await db.fetch_one(self.connection, _STATEMENTS["reserve"], parameters)
        return max(0.0, float(row[0])) if row else None

    async def hold_off(self, method: str, told_seconds: float | None, jitter: float) -> None:
        """Slack answered 429: no slot of the method before it said, or before a growing while."""
        row = await db.fetch_one(self.connection, _STATEMENTS["count_refusal"], self._key(method))
        seconds = hold_off_seconds(told_seconds, row[0] if row else 0, jitter)
        await self.connection.execute(
            _STATEMENTS["hold_off"], {**self._key(method), "seconds": seconds}
        )

    async def called(self, method: str, seconds_ago: float) -> None:
        """A call was sent so long ago: the next slot is a whole interval after that.

        A call is sent a little after its slot began; without this the next one would come early.
        """
        given = {"seconds_ago": seconds_ago, "interval_seconds": self.pace.interval_of(method)}
        await self.connection.execute(_STATEMENTS["called"], {**self._key(method), **given})

    async def admit(self, method: str) -> None:
        """Slack answered with a page: the refusals before it count no more."""
        await self.connection.execute(_STATEMENTS["admit"], self._key(method))

    def _key(self, method: str) -> dict[str, object]:
        return {"workspace_id": self.workspace_id, "method": method, "now": self.now}
