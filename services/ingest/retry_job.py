"""RetryJob: a dead job gets all its attempts once more."""

from __future__ import annotations

import grpc

from recall.error.v1 import error_pb2
from services.ingest import queue
from services.ingest.get_job import no_such_job
from services.ingest.jobs import JobRow, read_job, revive
from services.ingest.resources import Resources
from services.runtime import db
from services.runtime.errors import CallError


async def retry_job(resources: Resources, workspace_id: str, job_id: str) -> JobRow:
    """The job, ready again. Raises CallError NOT_FOUND, FAILED_PRECONDITION when not dead."""
    async with db.writing(resources.pool, workspace_id) as connection:
        job = await revive(connection, workspace_id, job_id)
        if job is not None:
            await queue.notify(connection, job.kind)
            return job
        job = await read_job(connection, workspace_id, job_id)
    if job is None:
        raise no_such_job(workspace_id, job_id)
    raise CallError(
        grpc.StatusCode.FAILED_PRECONDITION,
        error_pb2.ERROR_REASON_INVALID_REQUEST,
        f"Job {job_id!r} is {job.state}; only a dead job can be retried.",
    )
