"""Asking for history: the three jobs of the kind "backfill", by what they carry.

"channel:<id>" takes up one channel, "workspace" lists people and channels and takes up what is new,
"history" reads the next pages of whatever channels and threads of the workspace are due. One job a
workspace reads: its calls are paced by workspace, and so a worker's turn is spent on a page, never
on finding out that another channel's page came first.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime

from services.ingest.queue import Job, NewJob, enqueue
from services.runtime import db, sql

LISTING = {"task": "list"}
READING = {"task": "read"}

_STATEMENTS = sql.load("services.ingest", "backfill_jobs.sql")


async def ask_for_listing(connection: db.Connection, workspace_id: str) -> None:
    """Ask for people and channels to be listed, and the channels that are new to be read.

    Call it last in the transaction, as every request for a job.
    """
    await _ask_now(connection, workspace_id, NewJob("backfill", "workspace", LISTING))


async def ask_for_listing_if_due(
    connection: db.Connection, workspace_id: str, minutes: int, now: datetime | None
) -> None:
    """Ask for a listing, unless one is under way or ended in the last minutes."""
    parameters = {"workspace_id": workspace_id, "minutes": minutes, "now": now}
    row = await db.fetch_one(connection, _STATEMENTS["is_listing_due"], parameters)
    if row and row[0]:
        await ask_for_listing(connection, workspace_id)


async def ask_for_reading(connection: db.Connection, workspace_id: str) -> None:
    """Ask for what is due to be read."""
    await _ask_now(connection, workspace_id, NewJob("backfill", "history", READING))


async def come_back(
    connection: db.Connection, job: Job, delay_seconds: float, payload: Mapping[str, object]
) -> None:
    """Have a running job run again after a while, when it has ended well.

    Not with this payload when it was asked for anew meanwhile: then it begins anew.
    """
    await connection.execute(
        _STATEMENTS["come_back"],
        {
            "workspace_id": job.workspace_id,
            "job_id": job.job_id,
            "claim_number": job.claim_number,
            "delay_seconds": delay_seconds,
            "payload": json.dumps(dict(payload)),
        },
    )


async def _ask_now(connection: db.Connection, workspace_id: str, job: NewJob) -> None:
    """Ask for a job; one that waits for its time looks again now."""
    await connection.execute(
        _STATEMENTS["bring_forward"],
        {"workspace_id": workspace_id, "dedup_key": job.dedup_key},
    )
    await enqueue(connection, workspace_id, job)
