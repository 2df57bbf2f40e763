"""GetJob: where one job stands."""

from __future__ import annotations

from services.ingest.jobs import JobRow, read_job
from services.ingest.resources import Resources
from services.runtime import db
from services.runtime.errors import not_found


async def get_job(resources: Resources, workspace_id: str, job_id: str) -> JobRow:
    """The job. Raises CallError NOT_FOUND."""
    async with db.reading(resources.pool, workspace_id) as connection:
        job = await read_job(connection, workspace_id, job_id)
    if job is None:
        raise no_such_job(workspace_id, job_id)
    return job


def no_such_job(workspace_id: str, job_id: str) -> Exception:
    """The error for a job that does not exist, or that was done days ago."""
    return not_found(
        f"There is no job {job_id!r} in workspace {workspace_id!r}; `recall jobs` lists them."
    )
