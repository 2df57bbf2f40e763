"""ClaimJobs: jobs for a worker that has no database, waited for when there are none."""

from __future__ import annotations

import time
from collections.abc import Sequence

from services.ingest import queue
from services.ingest.queue import Job
from services.ingest.resources import Resources
from services.ingest.wakeups import POLL_SECONDS, woken_within
from services.runtime import call as calls
from services.runtime.errors import invalid

MAX_JOBS = 32
MAX_WAIT_SECONDS = 60.0
# Kept of the caller's deadline, so that an empty answer arrives instead of a failure.
ANSWER_SECONDS = 0.5


async def claim_jobs(
    resources: Resources, kinds: Sequence[str], limit: int, wait_seconds: float
) -> list[Job]:
    """Up to ``limit`` jobs (0 means 1), most urgent first, as soon as there is one.

    None after ``wait_seconds``, when the caller's deadline comes near, or when the process is
    about to stop. Raises CallError INVALID_ARGUMENT.
    """
    _check(kinds, limit, wait_seconds)
    deadline = time.monotonic() + calls.remaining_seconds(wait_seconds + ANSWER_SECONDS)
    deadline -= ANSWER_SECONDS
    with resources.wakeups.waiting(kinds) as woken:
        while True:
            woken.clear()
            jobs = await queue.claim(
                resources.queue_pool, kinds, limit or 1, terms=resources.job_terms
            )
            left_seconds = deadline - time.monotonic()
            if jobs or left_seconds <= 0 or resources.wakeups.is_closed:
                return jobs
            await woken_within(woken, min(left_seconds, POLL_SECONDS))


def _check(kinds: Sequence[str], limit: int, wait_seconds: float) -> None:
    unknown = sorted(set(kinds) - set(queue.KINDS))
    if unknown or not kinds:
        problem = f"there is no kind {unknown[0]!r}" if unknown else "at least one is required"
        raise invalid("kinds", f"{problem}; kinds are {', '.join(queue.KINDS)}")
    if not 0 <= limit <= MAX_JOBS:
        raise invalid("limit", f"must be 1 to {MAX_JOBS}, or 0 for 1")
    if not 0 <= wait_seconds <= MAX_WAIT_SECONDS:
        raise invalid("wait_seconds", f"must be 0 to {MAX_WAIT_SECONDS:.0f}")
