"""When a page that could not be read is tried again. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from services.ingest.backoff import Failure, next_run

# So often in a row, then the channel or thread counts as failed and is tried at a slow pace.
TRIES = 3
FAILED_SECONDS = 900.0
FAILED_DOUBLINGS = 6


@dataclass(frozen=True)
class Retry:
    """``attempts`` failures in a row, and seconds until the next try."""

    attempts: int
    delay_seconds: float
    has_failed: bool


def retry_of(attempts: int, jitter: float) -> Retry:
    """What follows one more failure after ``attempts`` in a row; ``jitter`` is in [0, 1).

    Seconds at first; from the third failure on 15 minutes, doubled up to 16 hours.
    """
    following = next_run(Failure.JOB, attempts, TRIES, jitter=jitter)
    if following.delay_seconds is not None:
        return Retry(following.attempts, following.delay_seconds, False)
    doublings = min(following.attempts - TRIES, FAILED_DOUBLINGS)
    return Retry(following.attempts, FAILED_SECONDS * 2.0**doublings, True)
