"""How much time a stage may take, so that there is always some left to report its failure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from services.runtime.errors import deadline_too_short

# Kept for putting the reply together, at most this part of what is left.
REPORT_SECONDS = 1.0
REPORT_PART = 0.1


@dataclass(frozen=True)
class Deadline:
    """An instant on ``clock`` (seconds, monotonic) at which the asker stops waiting."""

    clock: Callable[[], float]
    ends_at: float

    def left(self) -> float:
        """Seconds left. Raises CallError DEADLINE_EXCEEDED when there are none."""
        left = self.ends_at - self.clock()
        if left <= 0:
            raise deadline_too_short("The time for this question is over. Ask again with more.")
        return left

    def share(self, cap_seconds: float, part: float = 1.0) -> float:
        """Seconds a stage may take: at most the cap, at most ``part`` of what is left.

        Raises CallError DEADLINE_EXCEEDED when nothing is left.
        """
        left = self.left()
        return min(cap_seconds, (left - min(REPORT_SECONDS, left * REPORT_PART)) * part)


def deadline_in(
    clock: Callable[[], float], seconds: float, callers_end: float | None = None
) -> Deadline:
    """The earlier of ``seconds`` from now and the caller's own end (on the same clock)."""
    ends_at = clock() + seconds
    return Deadline(clock, ends_at if callers_end is None else min(ends_at, callers_end))


class Stopwatch:
    """Milliseconds by stage, and ``total`` since it was made."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._began = self._lap_began = clock()
        self._milliseconds: dict[str, float] = {}

    def lap(self, stage: str) -> None:
        """Book the time since the last lap on ``stage``."""
        now = self._clock()
        self._milliseconds[stage] = _rounded(now - self._lap_began)
        self._lap_began = now

    def milliseconds(self) -> dict[str, float]:
        """The laps so far with their ``total``."""
        return {**self._milliseconds, "total": _rounded(self._clock() - self._began)}


def _rounded(seconds: float) -> float:
    return round(seconds * 1000, 1)
