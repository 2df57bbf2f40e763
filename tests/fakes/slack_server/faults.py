"""What the Web API refuses, and when: rate buckets, scripted faults, page caps. Pure.

Times come in as arguments; nothing here reads a clock.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

FaultKind = Literal["ratelimited", "error", "http", "reset", "slow", "malformed", "reply_lost"]
# These let the call take effect and spoil only its answer.
LATE_FAULTS: frozenset[FaultKind] = frozenset({"slow", "reply_lost"})
Tier = Literal["unlimited", "strict", "marketplace"]

# Calls a minute by method; the strict class and the tiers of Slack's page on rate limits.
_MARKETPLACE = {
    "conversations.history": 50,
    "conversations.replies": 50,
    "conversations.members": 100,
    "conversations.info": 50,
    "conversations.list": 20,
    "conversations.join": 50,
    "conversations.open": 50,
    "users.conversations": 50,
    "users.info": 100,
    "users.list": 20,
    "team.info": 50,
    "chat.update": 50,
    "chat.delete": 50,
    "chat.postEphemeral": 100,
    "views.open": 100,
}
_STRICT = _MARKETPLACE | {"conversations.history": 1, "conversations.replies": 1}
PACES: dict[Tier, dict[str, int]] = {
    "unlimited": {},
    "strict": _STRICT,
    "marketplace": _MARKETPLACE,
}
_HISTORY = ("conversations.history", "conversations.replies")
LONG_CAP = 999
# Slack may return about fifty conversations a page whatever limit is asked.
DEFAULT_CAPS = {"conversations.list": 50, "users.list": 1000, "conversations.members": 1000}
PAGE_CAPS: dict[Tier, dict[str, int]] = {
    "unlimited": DEFAULT_CAPS | dict.fromkeys(_HISTORY, LONG_CAP),
    "strict": DEFAULT_CAPS | dict.fromkeys(_HISTORY, 15),
    "marketplace": DEFAULT_CAPS | dict.fromkeys(_HISTORY, LONG_CAP),
}


@dataclass(frozen=True)
class Place:
    """What a call is about; "" where it says nothing. ``thread_ts`` is any ts it names."""

    team_id: str = ""
    channel_id: str = ""
    thread_ts: str = ""


@dataclass
class Fault:
    """One scripted fault; ``team_id``, ``channel_id`` and ``thread_ts`` "" match any.

    ``on_calls`` are ordinals, from 1, of the matching calls since the fault was set; without
    them the first ``times`` matching calls fail, or all with None.
    """

    method: str
    kind: FaultKind
    team_id: str = ""
    channel_id: str = ""
    thread_ts: str = ""
    times: int | None = 1
    on_calls: frozenset[int] = frozenset()
    error: str = ""
    status: int = 503
    retry_after: int | None = None
    seconds: float = 0.0
    seen: int = field(default=0)

    def matches(self, method: str, place: Place) -> bool:
        """Whether a call is one that this fault is about."""
        return (
            self.method in ("*", method)
            and self.team_id in ("", place.team_id)
            and self.channel_id in ("", place.channel_id)
            and self.thread_ts in ("", place.thread_ts)
        )

    def strikes(self) -> bool:
        """Count a matching call; whether it is to fail."""
        self.seen += 1
        if self.on_calls:
            return self.seen in self.on_calls
        return self.times is None or self.seen <= self.times


@dataclass
class Intervention:
    """An act of somebody at the moment of the ``calls_left``-th next call of a method."""

    method: str
    calls_left: int
    act: Callable[[], object]

    def notice(self, method: str) -> None:
        """Count a call and act when it is the one."""
        if method != self.method:
            return
        self.calls_left -= 1
        if self.calls_left == 0:
            self.act()


@dataclass
class Bucket:
    """Tokens of one method in one workspace: ``capacity`` at most, refilled evenly."""

    capacity: int
    per_seconds: float
    tokens: float
    updated_at: float

    def take(self, now: float) -> float:
        """Take a token and return 0, or the seconds until there is one."""
        # A clock that was set back refills nothing.
        refill = max(0.0, now - self.updated_at) * self.capacity / self.per_seconds
        self.tokens = min(float(self.capacity), self.tokens + refill)
        self.updated_at = now
        if self.tokens >= 1 - 1e-9:
            self.tokens -= 1
            return 0.0
        return (1 - self.tokens) * self.per_seconds / self.capacity


@dataclass
class Limits:
    """Every fault, pace and cap in force. ``cursor_epoch`` outdates earlier cursors."""

    faults: list[Fault] = field(default_factory=list)
    paces: dict[tuple[str, str], tuple[int, float]] = field(default_factory=dict)
    buckets: dict[tuple[str, str], Bucket] = field(default_factory=dict)
    caps: dict[str, int] = field(default_factory=lambda: dict(PAGE_CAPS["unlimited"]))
    cursor_epoch: int = 0

    def use_tier(self, tier: Tier) -> None:
        """Replace every pace and cap by a class of Slack's rate limits."""
        self.paces = {(method, ""): (calls, 60.0) for method, calls in PACES[tier].items()}
        self.buckets.clear()
        self.caps = dict(PAGE_CAPS[tier])

    def set_pace(self, method: str, team_id: str, calls: int, per_seconds: float) -> None:
        """Allow ``calls`` per interval, in one workspace or ("") in each."""
        self.paces[method, team_id] = (calls, per_seconds)
        self.buckets.clear()

    def fault_for(self, method: str, place: Place) -> Fault | None:
        """The first fault that strikes. Faults with ``times`` take turns: the next one counts
        only the calls that those before it let pass."""
        striking: Fault | None = None
        for fault in self.faults:
            waits_its_turn = striking is not None and not fault.on_calls
            if waits_its_turn or not fault.matches(method, place):
                continue
            if fault.strikes() and striking is None:
                striking = fault
        return striking

    def retry_after(self, method: str, team_id: str, now: float) -> int:
        """0 if the call may pass, else the whole seconds to wait, at least one."""
        pace = self.paces.get((method, team_id)) or self.paces.get((method, ""))
        if pace is None:
            return 0
        bucket = self.buckets.setdefault(
            (method, team_id), Bucket(pace[0], pace[1], float(pace[0]), now)
        )
        wait = bucket.take(now)
        return max(1, math.ceil(wait)) if wait else 0

    def page_limit(self, method: str, asked: int, default: int) -> int:
        """How many rows a page holds; a request without a limit gets the default."""
        cap = self.caps.get(method, LONG_CAP)
        return min(asked or default, cap)
