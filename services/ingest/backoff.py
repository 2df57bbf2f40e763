"""When a failed job runs again, and when it never does."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

BASE_SECONDS = 2.0
CAP_SECONDS = 300.0
INFRASTRUCTURE_SECONDS = 2.0
SETUP_SECONDS = 30.0


class Failure(Enum):
    """Whose fault a failed run was."""

    # The job's own: another try may fail the same way. Counted.
    JOB = "job"
    # A database, provider or stage was away. Not counted: no outage kills a job.
    INFRASTRUCTURE = "infrastructure"
    # Something a person must set, such as a key. Not counted, tried at a slow pace.
    SETUP = "setup"
    # What was asked for can never be done. Counted, and not tried again.
    PERMANENT = "permanent"


@dataclass(frozen=True)
class NextRun:
    """``delay_seconds`` from now, or None: the job is dead. ``attempts`` is the new count."""

    attempts: int
    delay_seconds: float | None


def next_run(
    failure: Failure,
    attempts: int,
    max_attempts: int,
    *,
    jitter: float,
    retry_after_seconds: float | None = None,
) -> NextRun:
    """What follows a failed run after ``attempts`` counted ones before it.

    Exponential with equal jitter, ``min(300, 2 * 2 ** attempts) * (0.5 + jitter / 2)`` with
    ``jitter`` in [0, 1). Infrastructure failures wait at most 2 s, or exactly as long as the other
    side asked for, at most 300 s.
    """
    if failure is Failure.INFRASTRUCTURE:
        if retry_after_seconds is None:
            return NextRun(attempts, INFRASTRUCTURE_SECONDS * _share(jitter))
        return NextRun(attempts, min(CAP_SECONDS, retry_after_seconds))
    if failure is Failure.SETUP:
        return NextRun(attempts, SETUP_SECONDS * _share(jitter))
    if failure is Failure.PERMANENT or attempts + 1 >= max_attempts:
        return NextRun(attempts + 1, None)
    delay = min(CAP_SECONDS, BASE_SECONDS * 2.0 ** min(attempts, 30))
    return NextRun(attempts + 1, delay * _share(jitter))


def _share(jitter: float) -> float:
    return 0.5 + jitter / 2
