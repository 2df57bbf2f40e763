"""FailJob: a run of a job failed; it runs again later, or never."""

from __future__ import annotations

from dataclasses import dataclass

from services.ingest import queue
from services.ingest.backoff import Failure, next_run
from services.ingest.markup import storable
from services.ingest.queue import Claim
from services.ingest.resources import Resources

MAX_ERROR_CHARACTERS = 500


@dataclass(frozen=True)
class FailedRun:
    """Whose fault it was, in one sentence, and how long the other side asked to wait."""

    failure: Failure
    error: str
    retry_after_seconds: float | None


async def fail_job(resources: Resources, claim: Claim, run: FailedRun) -> str:
    """Schedule the next run by the retry policy, or leave the job dead.

    The state that the job is in now, "ready" or "dead"; empty: refused, because somebody else
    holds it, or nobody any more.
    """
    counted = await queue.read_attempts(resources.queue_pool, claim)
    if counted is None:
        return ""
    following = next_run(
        run.failure,
        *counted,
        jitter=resources.jitter(),
        retry_after_seconds=run.retry_after_seconds,
    )
    error = storable(run.error)[:MAX_ERROR_CHARACTERS]
    return await queue.fail(resources.queue_pool, claim, following, error)
