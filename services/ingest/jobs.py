"""Jobs as an operator looks at them: without their payloads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from services.runtime import db, sql

STATES = ("ready", "running", "done", "dead")

_STATEMENTS = sql.load("services.ingest", "jobs.sql")


@dataclass(frozen=True)
class JobRow:
    """Where one job stands."""

    workspace_id: str
    job_id: str
    kind: str
    state: str
    attempts: int
    max_attempts: int
    last_error: str
    created_at: datetime
    run_at: datetime
    finished_at: datetime | None


async def read_job(connection: db.Connection, workspace_id: str, job_id: str) -> JobRow | None:
    """One job of the workspace."""
    key = {"workspace_id": workspace_id, "job_id": job_id}
    row = await db.fetch_one(connection, _STATEMENTS["get_job"], key)
    return JobRow(*row) if row else None


async def read_jobs(
    connection: db.Connection, workspace_id: str, states: Sequence[str], limit: int
) -> list[JobRow]:
    """The newest jobs of the workspace in one of the states, newest first."""
    parameters = {"workspace_id": workspace_id, "states": list(states), "limit": limit}
    rows = await db.fetch_all(connection, _STATEMENTS["list_jobs"], parameters)
    return [JobRow(*row) for row in rows]


async def revive(connection: db.Connection, workspace_id: str, job_id: str) -> JobRow | None:
    """Make a dead job ready, with all its attempts before it; None when it is not dead."""
    key = {"workspace_id": workspace_id, "job_id": job_id}
    row = await db.fetch_one(connection, _STATEMENTS["retry_job"], key)
    return JobRow(*row) if row else None
