"""CompleteJob: a job is done."""

from __future__ import annotations

from services.ingest import queue
from services.ingest.queue import Claim
from services.ingest.resources import Resources


async def complete_job(resources: Resources, claim: Claim) -> bool:
    """End the job. False: refused, because somebody else holds it, or nobody any more."""
    return await queue.complete(resources.queue_pool, claim)
