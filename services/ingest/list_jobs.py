"""ListJobs: the jobs of a workspace."""

from __future__ import annotations

from collections.abc import Sequence

from services.ingest.jobs import STATES, JobRow, read_jobs
from services.ingest.resources import Resources
from services.ingest.workspaces import read_workspace
from services.runtime import db
from services.runtime.errors import invalid

DEFAULT_LIMIT = 100
MAX_LIMIT = 500
UNFINISHED_OR_DEAD = tuple(state for state in STATES if state != "done")


async def list_jobs(
    resources: Resources, workspace_id: str, states: Sequence[str], limit: int
) -> list[JobRow]:
    """Up to ``limit`` jobs (0 means 100) in these states (none: all but done), newest first.

    Raises CallError INVALID_ARGUMENT, WORKSPACE_NOT_FOUND.
    """
    if not 0 <= limit <= MAX_LIMIT:
        raise invalid("limit", f"must be 1 to {MAX_LIMIT}, or 0 for {DEFAULT_LIMIT}")
    async with db.reading(resources.pool, workspace_id) as connection:
        await read_workspace(connection, workspace_id)
        return await read_jobs(
            connection, workspace_id, states or UNFINISHED_OR_DEAD, limit or DEFAULT_LIMIT
        )
