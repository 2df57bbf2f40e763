"""The job queue: one table, claimed with FOR UPDATE SKIP LOCKED.

A claim is a lease of ten minutes that the holder renews every two seconds. A job whose holder was
silent for five seconds is claimable at once; its claim number then goes up, and whatever the
former holder says about the job is refused. Enqueueing happens as the ingest role inside the
writer's transaction; everything else as the queue role. docs/jobs.md tells the order of claims.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
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
ONE_BY_ONE: Mapping[str, int] = {}


@dataclass(frozen=True)
class Claim:
    """The right to work on a job, until somebody else claims it."""

    workspace_id: str
    job_id: str
    claim_number: int


@dataclass(frozen=True)
class Job(Claim):
    """One claim of a job. ``attempts`` are the counted failures of runs before this one.

    ``lapses`` are the holders before this one that fell silent over it, in a row.
    """

    kind: str
    payload: Mapping[str, Any]
    attempts: int
    max_attempts: int
    trace_context: str
    lapses: int = 0


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
    return await still_held(connection, [job]) == [job]


async def still_held(connection: db.Connection, jobs: Sequence[Job]) -> list[Job]:
    """Of several jobs of one workspace those whose claim is current, in the order given."""
    rows = await db.fetch_all(
        connection,
        _STATEMENTS["still_held"],
        {"workspace_id": jobs[0].workspace_id, **_ids(jobs)},
    )
    held = {row[0] for row in rows}
    return [job for job in jobs if job.job_id in held]


async def enqueue_embedding(
    connection: db.Connection, workspace_id: str, generation_id: str
) -> None:
    """Ask for the vectors that a generation lacks. Call it last in the transaction."""
    payload = {"generation_id": generation_id}
    await enqueue(connection, workspace_id, NewJob("embedding", generation_id, payload))


async def claim(
    pool: db.Pool,
    kinds: Sequence[str] = KINDS,
    limit: int = 1,
    terms: Terms = TERMS,
    batches: Mapping[str, int] = ONE_BY_ONE,
) -> list[Job]:
    """The most urgent jobs of the given kinds that nobody holds, now held by the caller.

    A job whose holders all fell silent is left dead instead. Behind a single job of a kind in
    ``batches`` others of its kind are claimed too, up to that number in all, by turn; a job that
    ever went wrong stays alone.
    """
    lease = {"max_attempts": terms.max_attempts, "lease_seconds": terms.lease_seconds}
    wanted = {"kinds": sorted(kinds, key=KINDS.index), "limit": limit}
    async with db.across_tenants(pool) as connection:
        silence = {"missed_seconds": terms.missed_seconds}
        jobs = await _claimed(connection, "claim", wanted | lease | silence)
        size = batches.get(jobs[0].kind, 1) if len(jobs) == 1 else 1
        if size > 1 and not jobs[0].attempts and not jobs[0].lapses:
            more = {"kind": jobs[0].kind, "limit": size - 1}
            jobs += await _claimed(connection, "claim_more", more | lease)
    for job in jobs:
        if job.lapses > MAX_LAPSES:
            await fail(pool, job, NextRun(job.attempts, None), WORN_OUT)
    return [job for job in jobs if job.lapses <= MAX_LAPSES]


async def _claimed(
    connection: db.Connection, statement: str, parameters: dict[str, Any]
) -> list[Job]:
    """The jobs that a statement claims, most urgent first."""
    rows = await db.fetch_all(connection, _STATEMENTS[statement], parameters)
    rows.sort(key=lambda row: (KINDS.index(row[3]), row[-2]))
    return [replace(Job(*row[:-2]), lapses=row[-1]) for row in rows]


async def heartbeat(pool: db.Pool, claim: Claim, terms: Terms = TERMS) -> bool:
    """Prove life and renew the lease. False: the job has another holder, or none any more."""
    return bool(await heartbeat_all(pool, [claim], terms))


async def heartbeat_all(pool: db.Pool, claims: Sequence[Claim], terms: Terms = TERMS) -> set[str]:
    """Prove life for several jobs at once; the ids of those that the caller holds."""
    parameters = {**_keys(claims), "lease_seconds": terms.lease_seconds}
    async with db.across_tenants(pool) as connection:
        rows = await db.fetch_all(connection, _STATEMENTS["heartbeat"], parameters)
    return {row[1] for row in rows}


async def complete(pool: db.Pool, claim: Claim) -> bool:
    """The job is done, or ready again when it was asked for meanwhile. False: not the holder."""
    return bool(await complete_all(pool, [claim]))


async def complete_all(pool: db.Pool, claims: Sequence[Claim]) -> set[str]:
    """Complete several jobs at once; the ids of those that the caller held."""
    async with db.across_tenants(pool) as connection:
        rows = await db.fetch_all(connection, _STATEMENTS["complete"], _keys(claims))
        for workspace_id, kind, state in {(row[0], row[2], row[3]) for row in rows}:
            await _wake(connection, workspace_id, kind, state)
    return {row[1] for row in rows}


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
        await _wake(connection, claim.workspace_id, kind, state)
    return str(state)


async def _wake(connection: db.Connection, workspace_id: str, kind: str, state: str) -> None:
    """Wake whoever waits for a job in its new state, or for its end."""
    if state == "ready":
        await notify(connection, kind)
    elif state != "running" and kind in BARRIER_KINDS:
        await connection.execute(_STATEMENTS["notify_commands"], {"workspace_id": workspace_id})


def _key(claim: Claim) -> dict[str, Any]:
    return {
        "workspace_id": claim.workspace_id,
        "job_id": claim.job_id,
        "claim_number": claim.claim_number,
    }


def _keys(claims: Sequence[Claim]) -> dict[str, Any]:
    return {"workspace_ids": [claim.workspace_id for claim in claims], **_ids(claims)}


def _ids(claims: Sequence[Claim]) -> dict[str, Any]:
    return {
        "job_ids": [claim.job_id for claim in claims],
        "claim_numbers": [claim.claim_number for claim in claims],
    }
