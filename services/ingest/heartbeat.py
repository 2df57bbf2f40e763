"""Heartbeat: the holder of a job proves that it lives."""

from __future__ import annotations

from services.ingest import queue
from services.ingest.queue import Claim
from services.ingest.resources import Resources


async def heartbeat(resources: Resources, claim: Claim) -> bool:
    """Renew the lease. False: somebody else holds the job, or nobody any more."""
    return await queue.heartbeat(resources.queue_pool, claim, resources.job_terms)
