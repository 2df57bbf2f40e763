"""The job queue: one table, claimed with FOR UPDATE SKIP LOCKED.

A claim is a lease of ten minutes that the holder renews every two seconds. A job whose holder was
silent for five seconds is claimable at once; its claim number then goes up, and whatever the
former holder says about the job is refused. Enqueueing happens as the ingest role inside the
writer's transaction; everything else as the queue role. docs/jobs.md tells the order of claims.
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
# Work that waits for others most of its time; it has a worker slot of its own.
WAITING_KINDS = ("backfill",)
# A finished job of these kinds runs again when it is asked for again. Of every other kind a
# second request with the same key is the first one delivered twice.
REPEATED_KINDS = ("backfill", "embedding", "rendering")

# A command waits while an older job of these kinds of its workspace may still run.
BARRIER_KINDS = KINDS[:2]

# Holders in a row that may fall silent over one job before it is taken for what kills them.
MAX_LAPSES = 20
WORN_OUT = f"Each process that ran this job died or fell silent, {MAX_LAPSES} times in a row."

CHANNEL = "recall_jobs"
HEARTBEAT_SECONDS = 2.0
# Slack delivers an event again for minutes only; its key must be known at least that long.
DONE_KEPT_DAYS = 3
# As long a dead job can be retried; a command's payload holds what a person asked.
DEAD_KEPT_DAYS = 7

_STATEMENTS = sql.load("services.ingest", "queue.sql")


@dataclass(frozen=True)
class Terms:
    """What a claim is: how long its lease, what silence ends it, and how often a job may fail."""

    lease_seconds: float = 600.0
    missed_seconds: float = 5.0
    max_attempts: int = 8


TERMS = Terms()


@dataclass(frozen=True)
class Claim:
    """The right to work on a job, until somebody else claims it."""

    workspace_id: str
    job_id: str
    claim_number: int


@dataclass(frozen=True)
class Job(Claim):
    """One claim of a job. ``attempts`` are the counted failures of runs before this one."""

    kind: str
    payload: Mapping[str, Any]
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
    await notify(connection, job.kind)
    return cursor.rowcount == 1


async def still_holds(connection: db.Connection, job: Job) -> bool:
    """Whether a claim is current, inside the transaction that does the job's work.

    A handler that asks under the workspace's lock writes nothing for a job that a purge deleted or
    that somebody else took over.
    """
    return await db.fetch_one(connection, _STATEMENTS["still_holds"], _key(job)) is not None


async def enqueue_embedding(
    connection: db.Connection, workspace_id: str, generation_id: str
) -> None:
    """Ask for the vectors that a generation lacks. Call it last in the transaction."""
    payload = {"generation_id": generation_id}
    await enqueue(connection, workspace_id, NewJob("embedding", generation_id, payload))


async def claim(
    pool: db.Pool, kinds: Sequence[str] = KINDS, limit: int = 1, terms: Terms = TERMS
) -> list[Job]:
    """The most urgent jobs of the given kinds that nobody holds, now held by the caller.

    A job whose holders all fell silent is left dead instead.
    """
    parameters = {
        "kinds": sorted(kinds, key=KINDS.index),
        "limit": limit,
        "max_attempts": terms.max_attempts,
        "lease_seconds": terms.lease_seconds,
        "missed_seconds": terms.missed_seconds,
    }
    async with db.across_tenants(pool) as connection:
        rows = await db.fetch_all(connection, _STATEMENTS["claim"], parameters)
    rows.sort(key=lambda row: (KINDS.index(row[3]), row[-2]))
    for row in rows:
        if row[-1] > MAX_LAPSES:
            job = Job(*row[:-2])
            await fail(pool, job, NextRun(job.attempts, None), WORN_OUT)
    return [Job(*row[:-2]) for row in rows if row[-1] <= MAX_LAPSES]


async def heartbeat(pool: db.Pool, claim: Claim, terms: Terms = TERMS) -> bool:
    """Prove life and renew the lease. False: the job has another holder, or none any more."""
    return bool(await _settled(pool, "heartbeat", claim, lease_seconds=terms.lease_seconds))


async def complete(pool: db.Pool, claim: Claim) -> bool:
    """The job is done, or ready again when it was asked for meanwhile. False: not the holder."""
    return bool(await _settled(pool, "complete", claim))


async def fail(pool: db.Pool, claim: Claim, next_run: NextRun, last_error: str) -> str:
    """Schedule the next run, or leave the job dead. ``last_error`` holds no message text.

    The state that the job is in now, "ready" or "dead"; empty: not the holder.
    """
    outcome = {"attempts": next_run.attempts, "last_error": last_error}
    if next_run.delay_seconds is None:
        return await _settled(pool, "bury", claim, **outcome)
    return await _settled(pool, "retry", claim, delay_seconds=next_run.delay_seconds, **outcome)


async def release(pool: db.Pool, claim: Claim) -> bool:
    """Give the job back unfinished, for anybody to claim at once. False: not the holder."""
    return bool(await _settled(pool, "release", claim))


async def read_attempts(pool: db.Pool, claim: Claim) -> tuple[int, int] | None:
    """Counted failures so far and the number that kills the job; None: not the holder."""
    async with db.across_tenants(pool) as connection:
        row = await db.fetch_one(connection, _STATEMENTS["read_attempts"], _key(claim))
    return (row[0], row[1]) if row else None


async def forget_finished(pool: db.Pool, limit: int) -> int:
    """Delete up to ``limit`` jobs that ended days ago; how many there were."""
    parameters = {
        "kept_days": DONE_KEPT_DAYS,
        "dead_kept_days": DEAD_KEPT_DAYS,
        "repeated_kinds": list(REPEATED_KINDS),
        "limit": limit,
    }
    async with db.across_tenants(pool) as connection:
        cursor = await connection.execute(_STATEMENTS["forget_finished"], parameters)
    return cursor.rowcount


async def notify(connection: db.Connection, kind: str) -> None:
    """Wake those who wait for a job of this kind, when the transaction commits."""
    await connection.execute(_STATEMENTS["notify"], {"kind": kind})


async def _settled(pool: db.Pool, statement: str, claim: Claim, **parameters: object) -> str:
    """Run a statement that touches the job only under its current claim number; its new state.

    Whoever waits for what becomes claimable by it is woken.
    """
    async with db.across_tenants(pool) as connection:
        row = await db.fetch_one(connection, _STATEMENTS[statement], _key(claim) | parameters)
        if row is None:
            return ""
        kind, state = row
        if state == "ready":
            await notify(connection, kind)
        elif state != "running" and kind in BARRIER_KINDS:
            await connection.execute(_STATEMENTS["notify_commands"], _key(claim))
    return str(state)


def _key(claim: Claim) -> dict[str, Any]:
    return {
        "workspace_id": claim.workspace_id,
        "job_id": claim.job_id,
        "claim_number": claim.claim_number,
    }
