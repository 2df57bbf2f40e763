"""The job queue: one table, claimed with FOR UPDATE SKIP LOCKED.

A claim is a lease of ten minutes that the holder renews every two seconds. A job whose holder was
silent for five seconds is claimable at once; its claim number then goes up, and whatever the
former holder says about the job is refused. Enqueueing happens as the ingest role inside the
writer's transaction; everything else as the queue role.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from services.ingest.backoff import NextRun
from services.runtime import db, sql

# In the order in which they are claimed.
KINDS = ("purge", "event", "command", "backfill", "embedding", "rendering")
# Short work that people wait for; one worker slot takes nothing else.
URGENT_KINDS = KINDS[:3]
# A finished job of these kinds runs again when it is asked for again. Of every other kind a
# second request with the same key is the first one delivered twice.
REPEATED_KINDS = ("backfill", "embedding", "rendering")

CHANNEL = "recall_jobs"
LEASE_SECONDS = 600.0
HEARTBEAT_SECONDS = 2.0
MISSED_SECONDS = 5.0

_STATEMENTS = sql.load("services.ingest", "queue.sql")


@dataclass(frozen=True)
class Job:
    """One claim of a job. ``attempts`` are the counted failures of runs before this one."""

    workspace_id: str
    job_id: str
    kind: str
    payload: Mapping[str, Any]
    claim_number: int
    attempts: int
    max_attempts: int
    trace_context: str


@dataclass(frozen=True)
class NewJob:
    """A job to enqueue; a key is one piece of work, however often it is asked for."""

    kind: str
    dedup_key: str
    payload: Mapping[str, Any]
    trace_context: str = ""


async def enqueue(connection: db.Connection, workspace_id: str, job: NewJob) -> bool:
    """Ask for a job inside the writer's transaction; it is visible when that commits.

    False: the key is known, and nothing more is to be done for it. Call it last in the
    transaction: the job's row stays locked until the commit, and a worker that runs the same job
    can not renew its lease meanwhile.
    """
    cursor = await connection.execute(
        _STATEMENTS["enqueue"],
        {
            "workspace_id": workspace_id,
            "kind": job.kind,
            "dedup_key": job.dedup_key,
            "payload": json.dumps(dict(job.payload)),
            "trace_context": job.trace_context,
            "repeated_kinds": list(REPEATED_KINDS),
        },
    )
    await connection.execute(_STATEMENTS["notify"])
    return cursor.rowcount == 1


async def still_holds(connection: db.Connection, job: Job) -> bool:
    """Whether a claim is current, inside the transaction that does the job's work.

    A handler that asks under the workspace's lock writes nothing for a job that a purge deleted or
    that somebody else took over.
    """
    claim_of = {
        "workspace_id": job.workspace_id,
        "job_id": job.job_id,
        "claim_number": job.claim_number,
    }
    return await db.fetch_one(connection, _STATEMENTS["still_holds"], claim_of) is not None


async def enqueue_embedding(
    connection: db.Connection, workspace_id: str, generation_id: str
) -> None:
    """Ask for the vectors that a generation lacks. Call it last in the transaction."""
    payload = {"generation_id": generation_id}
    await enqueue(connection, workspace_id, NewJob("embedding", generation_id, payload))


async def claim(pool: db.Pool, kinds: Sequence[str] = KINDS) -> Job | None:
    """The most urgent job of the given kinds that nobody holds, now held by the caller."""
    parameters = {
        "kinds": list(kinds),
        "kinds_in_order": list(KINDS),
        "missed_seconds": MISSED_SECONDS,
        "lease_seconds": LEASE_SECONDS,
    }
    async with db.across_tenants(pool) as connection:
        row = await db.fetch_one(connection, _STATEMENTS["claim"], parameters)
    return Job(*row) if row else None


async def heartbeat(pool: db.Pool, job: Job) -> bool:
    """Prove life and renew the lease. False: the job has another holder, or none any more."""
    return await _held(pool, "heartbeat", job, lease_seconds=LEASE_SECONDS)


async def complete(pool: db.Pool, job: Job) -> bool:
    """The job is done, or ready again when it was asked for meanwhile. False: not the holder."""
    return await _held(pool, "complete", job)


async def fail(pool: db.Pool, job: Job, next_run: NextRun, last_error: str) -> bool:
    """Schedule the next run, or leave the job dead. ``last_error`` holds no message text.

    False: not the holder.
    """
    outcome = {"attempts": next_run.attempts, "last_error": last_error}
    if next_run.delay_seconds is None:
        return await _held(pool, "bury", job, **outcome)
    return await _held(pool, "retry", job, delay_seconds=next_run.delay_seconds, **outcome)


async def release(pool: db.Pool, job: Job) -> bool:
    """Give the job back unfinished, for anybody to claim at once. False: not the holder."""
    return await _held(pool, "release", job)


async def _held(pool: db.Pool, statement: str, job: Job, **parameters: object) -> bool:
    """Run a statement that touches the job only under its current claim number."""
    claim_of = {
        "workspace_id": job.workspace_id,
        "job_id": job.job_id,
        "claim_number": job.claim_number,
    }
    async with db.across_tenants(pool) as connection:
        cursor = await connection.execute(_STATEMENTS[statement], {**claim_of, **parameters})
        return cursor.rowcount == 1
