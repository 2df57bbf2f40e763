"""When to leave a failing tier alone for a while. Pure state; the caller brings the clock."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

FAILURES_TO_OPEN = 5
WINDOW_SECONDS = 30.0
OPEN_SECONDS = 30.0


class Effect(Enum):
    """What one finished attempt tells about a tier."""

    SUCCEEDED = "succeeded"
    # A fault of the provider: five within the window open the breaker.
    COUNTS = "counts"
    # The key or the credit is no good, so that the next call would fail as well: opens at once.
    TRIPS = "trips"
    # Says nothing about the provider: refused content, a caller who left or ran out of time.
    FORGIVEN = "forgiven"


@dataclass(frozen=True)
class Ticket:
    """Leave to make one attempt; handed back with its effect."""

    trial: bool


@dataclass
class Breaker:
    """Closed until five failures within 30 s, then open for 30 s, then one trial at a time.

    A trial that succeeds closes the breaker, one that fails opens it for another 30 s, and one
    that tells nothing lets the next call be the trial. Instants are seconds of one monotonic
    clock. Every ticket must be recorded exactly once, or its trial blocks the tier.
    """

    _failures: list[float] = field(default_factory=list)
    _open_until: float | None = None
    _trial_running: bool = False

    def admit(self, now: float) -> Ticket | None:
        """Leave to make an attempt, or None while the tier is to be skipped."""
        if self._open_until is None:
            return Ticket(trial=False)
        if now < self._open_until or self._trial_running:
            return None
        self._trial_running = True
        return Ticket(trial=True)

    def record(self, ticket: Ticket, effect: Effect, now: float) -> None:
        """Take the effect of an attempt in; late news of an attempt made before opening is old."""
        if ticket.trial:
            self._record_trial(effect, now)
        elif self._open_until is None:
            self._record_ordinary(effect, now)

    def _record_trial(self, effect: Effect, now: float) -> None:
        self._trial_running = False
        if effect is Effect.SUCCEEDED:
            self._open_until = None
        elif effect is not Effect.FORGIVEN:
            self._open(now)

    def _record_ordinary(self, effect: Effect, now: float) -> None:
        if effect is Effect.COUNTS:
            recent = [instant for instant in self._failures if now - instant < WINDOW_SECONDS]
            self._failures = [*recent, now]
        if effect is Effect.TRIPS or len(self._failures) >= FAILURES_TO_OPEN:
            self._open(now)

    def _open(self, now: float) -> None:
        self._open_until = now + OPEN_SECONDS
        self._failures.clear()
