"""Rules of the job queue and of the loop that runs its jobs, on the real tables."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest

from recall.error.v1 import error_pb2
from services.ingest import queue
from services.ingest.backfill_jobs import come_back
from services.ingest.backoff import NextRun
from services.ingest.job_loop import BatchHandler, Handler, JobLoop
from services.ingest.migrate import migrate, read_migrations
from services.ingest.queue import Job, NewJob, Terms
from services.ingest.wakeups import listen
from services.runtime import db
from services.runtime.errors import invalid, unavailable
from services.stack.postgres import EmbeddedPostgres
from tests.conftest import free_port
from tests.waiting import until

WORKSPACE = "beacon"

Enqueue = Callable[..., Awaitable[None]]
Query = Callable[..., Any]


@pytest.fixture
def query(database_url: str) -> Query:
    """Run one statement as the owner; returns its first row."""

    def run(statement: bytes, parameters: tuple[object, ...] = ()) -> tuple[Any, ...] | None:
        with psycopg.connect(database_url, autocommit=True) as connection:
            cursor = connection.execute(statement, parameters)
            return cursor.fetchone() if cursor.description else None

    for workspace_id in (WORKSPACE, "other"):
        run(b"INSERT INTO workspaces (workspace_id, source) VALUES (%s, 'slack')", (workspace_id,))
    return run


@pytest.fixture
def enqueue(ingest_pool: db.Pool, query: Query) -> Enqueue:
    async def enqueue_job(kind: str, key: str = "k", workspace_id: str = WORKSPACE) -> None:
        async with db.writing(ingest_pool, workspace_id) as connection:
            await queue.enqueue(connection, workspace_id, NewJob(kind, key, {"key": key}))

    return enqueue_job


async def claimed(pool: db.Pool, kinds: tuple[str, ...] = queue.KINDS) -> Job:
    (job,) = await queue.claim(pool, kinds)
    return job


async def nothing_claimable(pool: db.Pool, kinds: tuple[str, ...] = queue.KINDS) -> bool:
    return await queue.claim(pool, kinds) == []


def state(query: Query, job: Job) -> Any:
    row = query(b"SELECT state FROM jobs WHERE job_id = %s", (job.job_id,))
    return row[0]


async def test_jobs_are_claimed_by_urgency_then_by_age(
    enqueue: Enqueue, queue_pool: db.Pool
) -> None:
    for kind in ("embedding", "backfill", "command", "event", "purge"):
        await enqueue(kind)
    await enqueue("event", "later")
    order = [await claimed(queue_pool) for _ in range(6)]
    assert [job.kind for job in order] == [
        "purge",
        "event",
        "event",
        "command",
        "backfill",
        "embedding",
    ]
    assert [job.payload["key"] for job in order[1:3]] == ["k", "later"]
    assert await nothing_claimable(queue_pool)


async def test_a_slot_claims_only_the_kinds_it_asks_for(
    enqueue: Enqueue, queue_pool: db.Pool
) -> None:
    await enqueue("embedding")
    assert await nothing_claimable(queue_pool, queue.URGENT_KINDS)
    assert (await claimed(queue_pool, ("embedding",))).kind == "embedding"


async def test_jobs_of_every_workspace_are_claimed(enqueue: Enqueue, queue_pool: db.Pool) -> None:
    await enqueue("event", workspace_id=WORKSPACE)
    await enqueue("event", workspace_id="other")
    found = {(await claimed(queue_pool)).workspace_id for _ in range(2)}
    assert found == {WORKSPACE, "other"}


async def test_two_claimers_never_hold_one_job(enqueue: Enqueue, queue_pool: db.Pool) -> None:
    for number in range(6):
        await enqueue("event", str(number))
    jobs = await asyncio.gather(*(queue.claim(queue_pool) for _ in range(12)))
    held = [job.job_id for found in jobs for job in found]
    assert len(held) == len(set(held)) == 6


async def test_a_job_is_invisible_until_its_writer_commits(
    ingest_pool: db.Pool, queue_pool: db.Pool, query: Query
) -> None:
    async with db.writing(ingest_pool, WORKSPACE) as connection:
        await queue.enqueue_embedding(connection, WORKSPACE, "g1")
        assert await nothing_claimable(queue_pool)
    assert (await claimed(queue_pool)).payload == {"generation_id": "g1"}


async def test_a_job_of_a_rolled_back_writer_never_exists(
    ingest_pool: db.Pool, queue_pool: db.Pool, query: Query
) -> None:
    with pytest.raises(RuntimeError):
        async with db.writing(ingest_pool, WORKSPACE) as connection:
            await queue.enqueue_embedding(connection, WORKSPACE, "g1")
            raise RuntimeError
    assert await nothing_claimable(queue_pool)


async def test_a_waiting_job_can_not_be_claimed_while_a_writer_asks_for_it_again(
    enqueue: Enqueue, ingest_pool: db.Pool, queue_pool: db.Pool
) -> None:
    await enqueue("embedding", "g1")
    async with db.writing(ingest_pool, WORKSPACE) as connection:
        await queue.enqueue_embedding(connection, WORKSPACE, "g1")
        assert await nothing_claimable(queue_pool)
    assert not await nothing_claimable(queue_pool)


async def test_a_running_job_asked_for_again_runs_once_more(
    enqueue: Enqueue, queue_pool: db.Pool, query: Query
) -> None:
    await enqueue("embedding")
    job = await claimed(queue_pool)
    await enqueue("embedding")
    assert state(query, job) == "running"
    assert await queue.complete(queue_pool, job)
    again = await claimed(queue_pool)
    assert again.job_id == job.job_id
    assert await queue.complete(queue_pool, again)
    assert state(query, job) == "done"


@pytest.mark.parametrize("end", ["done", "dead"])
async def test_an_ended_embedding_job_asked_for_again_is_ready_with_no_failure_counted(
    enqueue: Enqueue, queue_pool: db.Pool, end: str
) -> None:
    await enqueue("embedding")
    job = await claimed(queue_pool)
    if end == "done":
        await queue.complete(queue_pool, job)
    else:
        await queue.fail(queue_pool, job, NextRun(8, None), "broken")
    assert await nothing_claimable(queue_pool)
    await enqueue("embedding")
    again = await claimed(queue_pool)
    assert (again.job_id, again.attempts) == (job.job_id, 0)


async def test_an_event_delivered_twice_runs_once(enqueue: Enqueue, queue_pool: db.Pool) -> None:
    await enqueue("event")
    job = await claimed(queue_pool)
    await enqueue("event")
    await queue.complete(queue_pool, job)
    await enqueue("event")
    assert await nothing_claimable(queue_pool)


@pytest.mark.parametrize(
    "lapse",
    [
        b"UPDATE jobs SET heartbeat_at = now() - interval '6 seconds'",
        b"UPDATE jobs SET leased_until = now() - interval '1 second'",
    ],
    ids=["silent", "lease over"],
)
async def test_a_stale_holder_is_refused_everything(
    enqueue: Enqueue, queue_pool: db.Pool, query: Query, lapse: bytes
) -> None:
    await enqueue("embedding")
    former = await claimed(queue_pool)
    query(lapse)
    current = await claimed(queue_pool)
    assert current.job_id == former.job_id
    assert current.claim_number == former.claim_number + 1
    assert not await queue.heartbeat(queue_pool, former)
    assert not await queue.complete(queue_pool, former)
    assert not await queue.fail(queue_pool, former, NextRun(1, 1.0), "late")
    assert not await queue.fail(queue_pool, former, NextRun(8, None), "late")
    assert not await queue.release(queue_pool, former)
    assert state(query, current) == "running"
    assert await queue.complete(queue_pool, current)


async def test_a_job_whose_holders_all_fall_silent_is_dead_with_the_reason(
    enqueue: Enqueue, queue_pool: db.Pool, query: Query
) -> None:
    await enqueue("event")
    for _ in range(queue.MAX_LAPSES + 1):
        await claimed(queue_pool)
        query(b"UPDATE jobs SET heartbeat_at = now() - interval '6 seconds'")
    assert await nothing_claimable(queue_pool)
    assert query(b"SELECT state, last_error FROM jobs") == ("dead", queue.WORN_OUT)


@pytest.mark.parametrize("outcome", ["failed", "asked for again"])
async def test_silence_is_counted_only_in_a_row(
    enqueue: Enqueue, queue_pool: db.Pool, query: Query, outcome: str
) -> None:
    await enqueue("embedding")
    query(b"UPDATE jobs SET lapses = %s", (queue.MAX_LAPSES,))
    job = await claimed(queue_pool)
    if outcome == "failed":
        await queue.fail(queue_pool, job, NextRun(1, 0.0), "broken")
    else:
        await enqueue("embedding")
        await queue.complete(queue_pool, job)
    await claimed(queue_pool)
    query(b"UPDATE jobs SET heartbeat_at = now() - interval '6 seconds'")
    await claimed(queue_pool)


async def test_a_holder_that_proves_life_keeps_its_job(
    enqueue: Enqueue, queue_pool: db.Pool, query: Query
) -> None:
    await enqueue("event")
    job = await claimed(queue_pool)
    query(b"UPDATE jobs SET heartbeat_at = now() - interval '6 seconds', leased_until = now()")
    assert await queue.heartbeat(queue_pool, job)
    assert await nothing_claimable(queue_pool)


async def test_a_claim_is_a_lease_of_ten_minutes(
    enqueue: Enqueue, queue_pool: db.Pool, query: Query
) -> None:
    await enqueue("event")
    await claimed(queue_pool)
    assert query(b"SELECT leased_until - heartbeat_at = interval '10 minutes' FROM jobs") == (True,)


async def test_a_failed_job_waits_for_its_time_with_its_error_and_count(
    enqueue: Enqueue, queue_pool: db.Pool, query: Query
) -> None:
    await enqueue("event")
    job = await claimed(queue_pool)
    assert await queue.fail(queue_pool, job, NextRun(1, 60.0), "broken")
    row = query(b"SELECT state, attempts, last_error, run_at > now() + interval '50 s' FROM jobs")
    assert row == ("ready", 1, "broken", True)
    assert await nothing_claimable(queue_pool)
    query(b"UPDATE jobs SET run_at = now()")
    assert (await claimed(queue_pool)).attempts == 1


async def test_a_dead_job_stays_visible_and_is_never_claimed(
    enqueue: Enqueue, queue_pool: db.Pool, query: Query
) -> None:
    await enqueue("event")
    await queue.fail(queue_pool, await claimed(queue_pool), NextRun(8, None), "broken")
    assert query(b"SELECT state, attempts, last_error FROM jobs") == ("dead", 8, "broken")
    assert await nothing_claimable(queue_pool)


async def test_a_job_asked_for_during_its_last_attempt_begins_anew(
    enqueue: Enqueue, queue_pool: db.Pool
) -> None:
    await enqueue("embedding")
    job = await claimed(queue_pool)
    await enqueue("embedding")
    await queue.fail(queue_pool, job, NextRun(8, None), "broken")
    assert (await claimed(queue_pool)).attempts == 0


async def test_a_released_job_is_claimable_at_once_and_not_counted(
    enqueue: Enqueue, queue_pool: db.Pool
) -> None:
    await enqueue("embedding")
    job = await claimed(queue_pool)
    assert await queue.release(queue_pool, job)
    again = await claimed(queue_pool)
    assert replace(again, claim_number=job.claim_number) == job


async def test_the_retrieve_role_can_not_see_jobs(enqueue: Enqueue, retrieve_pool: db.Pool) -> None:
    await enqueue("event")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        async with db.reading(retrieve_pool, WORKSPACE) as connection:
            await connection.execute("SELECT job_id FROM jobs")


def forget_that_it_was_just_asked_for(query: Query) -> None:
    """Jobs of earlier transactions are older; the clock of one test may not tell them apart."""
    query(b"UPDATE jobs SET created_at = created_at - interval '1 minute'")


@pytest.mark.parametrize("kind", ["purge", "event"])
@pytest.mark.parametrize(
    ("barrier_state", "is_free"),
    [("ready", False), ("running", False), ("retrying", False), ("done", True), ("dead", True)],
)
async def test_a_command_waits_for_older_purges_and_events_until_they_end(
    enqueue: Enqueue, queue_pool: db.Pool, query: Query, kind: str, barrier_state: str,
    is_free: bool,
) -> None:  # fmt: skip
    await enqueue(kind)
    forget_that_it_was_just_asked_for(query)
    await enqueue("command")
    older = await claimed(queue_pool) if barrier_state != "ready" else None
    if older and barrier_state == "retrying":
        await queue.fail(queue_pool, older, NextRun(1, 60.0), "broken")
    elif older and barrier_state == "dead":
        await queue.fail(queue_pool, older, NextRun(8, None), "broken")
    elif older and barrier_state == "done":
        await queue.complete(queue_pool, older)
    assert await nothing_claimable(queue_pool, ("command",)) != is_free


async def test_a_command_waits_neither_for_younger_events_nor_for_other_workspaces(
    enqueue: Enqueue, queue_pool: db.Pool, query: Query
) -> None:
    await enqueue("event", workspace_id="other")
    await enqueue("command")
    forget_that_it_was_just_asked_for(query)
    await enqueue("event")
    assert (await claimed(queue_pool, ("command",))).kind == "command"


async def test_a_command_waits_neither_for_backfills_nor_for_embeddings(
    enqueue: Enqueue, queue_pool: db.Pool, query: Query
) -> None:
    await enqueue("backfill")
    await enqueue("embedding")
    forget_that_it_was_just_asked_for(query)
    await enqueue("command")
    assert (await claimed(queue_pool)).kind == "command"


async def test_a_backlog_of_one_workspace_delays_another_s_job_by_one_at_most(
    enqueue: Enqueue, queue_pool: db.Pool
) -> None:
    for number in range(30):
        await enqueue("event", str(number))
    for _ in range(10):
        await queue.complete(queue_pool, await claimed(queue_pool))
    await enqueue("event", "single", workspace_id="other")
    next_two = [await claimed(queue_pool) for _ in range(2)]
    assert "other" in {job.workspace_id for job in next_two}


async def test_three_backlogs_are_served_in_turn(
    enqueue: Enqueue, queue_pool: db.Pool, query: Query
) -> None:
    query(b"INSERT INTO workspaces (workspace_id, source) VALUES ('third', 'slack')")
    for workspace_id, length in ((WORKSPACE, 12), ("other", 6), ("third", 3)):
        for number in range(length):
            await enqueue("event", str(number), workspace_id=workspace_id)
    order = []
    for _ in range(21):
        job = await claimed(queue_pool)
        await queue.complete(queue_pool, job)
        order.append(job.workspace_id)
    assert [order[:9].count(name) for name in (WORKSPACE, "other", "third")] == [3, 3, 3]
    assert [order[9:15].count(name) for name in (WORKSPACE, "other")] == [3, 3]


async def test_a_workspace_that_was_served_much_is_not_put_behind_for_it(
    enqueue: Enqueue, queue_pool: db.Pool
) -> None:
    for number in range(20):
        await enqueue("event", str(number))
        await queue.complete(queue_pool, await claimed(queue_pool))
    for number in range(10):
        await enqueue("event", str(number), workspace_id="other")
    await enqueue("event", "single")
    next_three = [await claimed(queue_pool) for _ in range(3)]
    assert WORKSPACE in {job.workspace_id for job in next_three}


async def test_a_workspace_whose_jobs_all_fail_gets_no_more_than_its_share(
    enqueue: Enqueue, queue_pool: db.Pool
) -> None:
    for number in range(6):
        await enqueue("event", str(number))
        await enqueue("event", str(number), workspace_id="other")
    served = []
    for _ in range(12):
        job = await claimed(queue_pool)
        served.append(job.workspace_id)
        if job.workspace_id == WORKSPACE:
            await queue.fail(queue_pool, job, NextRun(0, 0.0), "away")
        else:
            await queue.complete(queue_pool, job)
    assert served.count("other") >= 5


async def test_many_jobs_are_claimed_at_once_most_urgent_first(
    enqueue: Enqueue, queue_pool: db.Pool
) -> None:
    for kind in ("embedding", "event", "purge"):
        await enqueue(kind)
        await enqueue(kind, "second")
    jobs = await queue.claim(queue_pool, limit=5)
    assert [job.kind for job in jobs] == ["purge", "purge", "event", "event", "embedding"]


@pytest.mark.parametrize("kind", ["purge", "event", "command", "backfill", "embedding"])
async def test_a_done_job_keeps_nothing_of_its_payload(
    enqueue: Enqueue, queue_pool: db.Pool, query: Query, kind: str
) -> None:
    await enqueue(kind)
    await queue.complete(queue_pool, await claimed(queue_pool))
    assert query(b"SELECT state, payload FROM jobs") == ("done", {})


async def test_a_dead_job_keeps_its_payload_for_a_retry(
    enqueue: Enqueue, queue_pool: db.Pool, query: Query
) -> None:
    await enqueue("event")
    await queue.fail(queue_pool, await claimed(queue_pool), NextRun(1, None), "broken")
    assert query(b"SELECT state, payload FROM jobs") == ("dead", {"key": "k"})


@pytest.mark.parametrize(
    ("end", "days", "is_kept"),
    [("done", 2, True), ("done", 4, False), ("dead", 6, True), ("dead", 8, False)],
)
async def test_finished_jobs_are_forgotten_after_days(
    enqueue: Enqueue, queue_pool: db.Pool, query: Query, end: str, days: int, is_kept: bool
) -> None:
    await enqueue("event", "waiting")
    query(b"UPDATE jobs SET created_at = now() - interval '100 days', run_at = now() + '1 day'")
    await enqueue("event", "ended")
    job = await claimed(queue_pool)
    if end == "done":
        await queue.complete(queue_pool, job)
    else:
        await queue.fail(queue_pool, job, NextRun(8, None), "broken")
    query(b"UPDATE jobs SET finished_at = finished_at - make_interval(days => %s)", (days,))
    assert await queue.forget_finished(queue_pool, 10) == (0 if is_kept else 1)
    assert query(b"SELECT count(*) FROM jobs") == (2 if is_kept else 1,)


async def test_the_outcome_of_repeated_work_is_not_forgotten(
    enqueue: Enqueue, queue_pool: db.Pool, query: Query
) -> None:
    await enqueue("embedding")
    await queue.complete(queue_pool, await claimed(queue_pool))
    query(b"UPDATE jobs SET finished_at = finished_at - interval '1 year'")
    assert await queue.forget_finished(queue_pool, 10) == 0


async def test_the_number_of_attempts_is_that_of_the_process_that_claims(
    enqueue: Enqueue, queue_pool: db.Pool
) -> None:
    await enqueue("event")
    (job,) = await queue.claim(queue_pool, terms=Terms(max_attempts=3))
    assert job.max_attempts == 3


# The loop ------------------------------------------------------------------------------------


@asynccontextmanager
async def running(
    pool: db.Pool,
    handlers: dict[str, Handler],
    batch_handlers: dict[str, BatchHandler] | None = None,
) -> AsyncIterator[JobLoop]:
    """A loop for the length of a block, stopped at its end."""
    loop = JobLoop(pool, handlers, lambda: 0.0, batch_handlers=batch_handlers or {})
    task = asyncio.create_task(loop.run())
    try:
        yield loop
    finally:
        loop.stop()
        await task


async def until_state(query: Query, wanted: str) -> None:
    await until(lambda: query(b"SELECT state FROM jobs") == (wanted,))


async def test_the_loop_completes_a_job_that_its_handler_finished(
    enqueue: Enqueue, queue_pool: db.Pool, query: Query
) -> None:
    seen: list[str] = []

    async def handle(job: Job) -> None:
        seen.append(job.payload["key"])

    async with running(queue_pool, {"event": handle}):
        await enqueue("event")
        await until_state(query, "done")
    assert seen == ["k"]


async def test_a_defect_is_counted_and_its_text_is_not_stored(
    enqueue: Enqueue, queue_pool: db.Pool, query: Query
) -> None:
    async def handle(job: Job) -> None:
        raise ValueError("a message's text")

    await enqueue("event")
    query(b"UPDATE jobs SET attempts = 7")
    async with running(queue_pool, {"event": handle}):
        await until_state(query, "dead")
    attempts, last_error = query(b"SELECT attempts, last_error FROM jobs")
    assert attempts == 8
    assert last_error.startswith("Internal error.") and "text" not in last_error


async def test_a_job_that_can_never_succeed_is_dead_at_once_with_the_reason(
    enqueue: Enqueue, queue_pool: db.Pool, query: Query
) -> None:
    async def handle(job: Job) -> None:
        raise invalid("envelope", "has no event")

    await enqueue("event")
    async with running(queue_pool, {"event": handle}):
        await until_state(query, "dead")
    assert query(b"SELECT attempts, last_error FROM jobs") == (1, "envelope: has no event")


async def test_an_outage_is_retried_until_it_ends_and_not_counted(
    enqueue: Enqueue, queue_pool: db.Pool, query: Query
) -> None:
    failures = iter(range(10))

    async def handle(job: Job) -> None:
        assert job.attempts == 0
        if next(failures) < 9:
            reason = error_pb2.ERROR_REASON_EMBEDDER_UNAVAILABLE
            raise unavailable(reason, "The provider is away.", retry_after_seconds=0.01)

    await enqueue("event")
    async with running(queue_pool, {"event": handle}) as loop:
        waking = asyncio.create_task(_wake_often(loop))
        await until_state(query, "done")
        waking.cancel()
    assert next(failures, None) is None


async def _wake_often(loop: JobLoop) -> None:
    while True:
        await asyncio.sleep(0.02)
        loop.wake()


async def test_a_finished_event_starts_the_command_that_waited_for_it(
    enqueue: Enqueue, queue_pool: db.Pool, database_url: str, query: Query
) -> None:
    woken: list[str] = []
    url = db.url_as_role(database_url, db.QUEUE_ROLE)
    await enqueue("event")
    await enqueue("command")
    event = await claimed(queue_pool)
    listening = asyncio.create_task(listen(url, woken.append))
    await until(lambda: "" in woken)
    await queue.complete(queue_pool, event)
    await until(lambda: "command" in woken)
    listening.cancel()


async def test_a_stopped_loop_gives_back_the_job_it_could_not_finish(
    enqueue: Enqueue, queue_pool: db.Pool, query: Query
) -> None:
    began = asyncio.Event()

    async def handle(job: Job) -> None:
        began.set()
        await asyncio.Event().wait()

    await enqueue("event")
    async with running(queue_pool, {"event": handle}):
        await began.wait()
    assert query(b"SELECT state, attempts FROM jobs") == ("ready", 0)


async def test_a_handler_is_stopped_when_another_holder_took_its_job(
    enqueue: Enqueue, queue_pool: db.Pool, query: Query
) -> None:
    began, ended = asyncio.Event(), asyncio.Event()

    async def handle(job: Job) -> None:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    await enqueue("event")
    async with running(queue_pool, {"event": handle}):
        await began.wait()
        query(b"UPDATE jobs SET claim_number = claim_number + 1")
        async with asyncio.timeout(30):
            await ended.wait()
    assert query(b"SELECT state, claim_number FROM jobs") == ("running", 2)


async def test_an_urgent_job_runs_while_a_long_one_holds_the_other_slot(
    enqueue: Enqueue, queue_pool: db.Pool
) -> None:
    busy, urgent = asyncio.Event(), asyncio.Event()

    async def embedding(job: Job) -> None:
        busy.set()
        await urgent.wait()

    async def event(job: Job) -> None:
        urgent.set()

    async with running(queue_pool, {"embedding": embedding, "event": event}):
        await enqueue("embedding")
        async with asyncio.timeout(30):
            await busy.wait()
            await enqueue("event")
            await urgent.wait()


async def test_a_committed_job_wakes_the_listeners(
    enqueue: Enqueue, database_url: str, queue_pool: db.Pool
) -> None:
    woken: asyncio.Queue[str] = asyncio.Queue()
    url = db.url_as_role(database_url, db.QUEUE_ROLE)
    listening = asyncio.create_task(listen(url, woken.put_nowait))
    async with asyncio.timeout(30):
        assert await woken.get() == ""  # connected
        await enqueue("event")
        assert await woken.get() == "event"
    listening.cancel()


async def test_the_loop_goes_on_after_the_database_was_away(tmp_path: Path) -> None:
    server = EmbeddedPostgres(tmp_path, free_port(), durable=False)
    url = server.start()
    migrate(url, read_migrations())
    attempt = iter(range(100))

    async def handle(job: Job) -> None:
        """Its first run loses the database; the second does its work in it."""
        if next(attempt) == 0:
            await asyncio.to_thread(server.stop)
        async with db.writing(ingest_pool, WORKSPACE) as connection:
            await connection.execute("UPDATE workspaces SET domain = 'done'")

    try:
        with psycopg.connect(url) as connection:
            connection.execute(
                "INSERT INTO workspaces (workspace_id, source) VALUES ('beacon', 'slack')"
            )
        queue_url = db.url_as_role(url, db.QUEUE_ROLE)
        async with (
            db.open_pool(queue_url) as queue_pool,
            db.open_pool(db.url_as_role(url, db.INGEST_ROLE)) as ingest_pool,
        ):
            async with db.writing(ingest_pool, WORKSPACE) as writer:
                await queue.enqueue(writer, WORKSPACE, NewJob("event", "k", {}))
            async with running(queue_pool, {"event": handle}):
                await until(lambda: server.running_pid() is None)
                # Long enough for a connection attempt, a claim and a heartbeat to fail.
                await asyncio.sleep(4)
                await asyncio.to_thread(server.start)
                await until(lambda: outcome(url) == ("done", "done"))
    finally:
        server.stop()


def outcome(url: str) -> Any:
    with psycopg.connect(url) as connection:
        return connection.execute("SELECT state, domain FROM jobs, workspaces").fetchone()


async def test_a_page_of_history_that_waits_for_its_slot_keeps_no_other_job_waiting(
    enqueue: Enqueue, queue_pool: db.Pool
) -> None:
    waiting, embedded = asyncio.Event(), asyncio.Event()

    async def backfill(job: Job) -> None:
        waiting.set()
        await embedded.wait()

    async def embedding(job: Job) -> None:
        embedded.set()

    async with running(queue_pool, {"backfill": backfill, "embedding": embedding}):
        await enqueue("backfill")
        async with asyncio.timeout(30):
            await waiting.wait()
            await enqueue("embedding")
            await embedded.wait()


async def test_a_job_that_comes_back_later_is_not_claimed_before(
    enqueue: Enqueue, queue_pool: db.Pool, ingest_pool: db.Pool, query: Query
) -> None:
    await enqueue("backfill")
    job = await claimed(queue_pool)
    async with db.writing(ingest_pool, job.workspace_id) as connection:
        await come_back(connection, job, 3600, {"cursor": "x"})
    assert await queue.complete(queue_pool, job)
    assert await queue.claim(queue_pool) == []
    query(b"UPDATE jobs SET run_at = now()")
    assert (await claimed(queue_pool)).payload == {"cursor": "x"}


async def test_a_job_that_comes_back_begins_anew_when_it_was_asked_for_meanwhile(
    enqueue: Enqueue, queue_pool: db.Pool, ingest_pool: db.Pool, query: Query
) -> None:
    await enqueue("backfill")
    job = await claimed(queue_pool)
    await enqueue("backfill")
    async with db.writing(ingest_pool, job.workspace_id) as connection:
        await come_back(connection, job, 3600, {"cursor": "x"})
    await queue.complete(queue_pool, job)
    query(b"UPDATE jobs SET run_at = now()")
    assert "cursor" not in (await claimed(queue_pool)).payload


# Batches --------------------------------------------------------------------------------------

BATCHES = {"event": 4}
# The loop tests below use a kind that only one slot claims, so that one claim takes all there is.


def keys(jobs: Sequence[Job]) -> list[str]:
    return [job.payload["key"] for job in jobs]


def ended(query: Query) -> bool:
    left = b"SELECT count(*) FROM jobs WHERE state IN ('ready', 'running')"
    return bool(query(left) == (0,))


async def never(job: Job) -> None:
    raise AssertionError("jobs that were claimed together were not done together")


async def test_jobs_are_claimed_together_by_turn_up_to_the_size_of_a_batch(
    enqueue: Enqueue, queue_pool: db.Pool
) -> None:
    for number in range(6):
        await enqueue("event", str(number))
    await enqueue("event", "single", workspace_id="other")
    await enqueue("embedding")
    first = await queue.claim(queue_pool, batches=BATCHES)
    second = await queue.claim(queue_pool, batches=BATCHES)
    assert keys(first)[0] == "0" and len(first) == 4
    # One workspace's backlog delays another's job by one at most, in a batch too.
    assert "single" in keys(first)[:2]
    assert keys(second) == ["3", "4", "5"]
    assert keys(await queue.claim(queue_pool, batches=BATCHES)) == ["k"]


async def test_a_kind_without_a_batch_is_claimed_one_by_one(
    enqueue: Enqueue, queue_pool: db.Pool
) -> None:
    await enqueue("purge")
    await enqueue("purge", "second")
    assert keys(await queue.claim(queue_pool, batches=BATCHES)) == ["k"]


@pytest.mark.parametrize("wrong", ["attempts", "lapses"])
async def test_a_job_that_ever_went_wrong_is_alone(
    enqueue: Enqueue, queue_pool: db.Pool, query: Query, wrong: str
) -> None:
    for number in range(4):
        await enqueue("event", str(number))
    query(b"UPDATE jobs SET " + wrong.encode() + b" = 1 WHERE dedup_key IN ('0', '2')")
    claims = [keys(await queue.claim(queue_pool, batches=BATCHES)) for _ in range(3)]
    assert claims == [["0"], ["1", "3"], ["2"]]


async def test_a_job_whose_holder_fell_silent_is_alone(
    enqueue: Enqueue, queue_pool: db.Pool, query: Query
) -> None:
    for number in range(3):
        await enqueue("event", str(number))
    assert len(await queue.claim(queue_pool, batches=BATCHES)) == 3
    query(b"UPDATE jobs SET heartbeat_at = now() - interval '6 seconds'")
    claims = [await queue.claim(queue_pool, batches=BATCHES) for _ in range(3)]
    assert [len(jobs) for jobs in claims] == [1, 1, 1]


async def test_of_several_jobs_only_those_still_held_are_completed(
    enqueue: Enqueue, queue_pool: db.Pool, query: Query
) -> None:
    for number in range(3):
        await enqueue("event", str(number))
    jobs = await queue.claim(queue_pool, batches=BATCHES)
    query(b"UPDATE jobs SET claim_number = claim_number + 1 WHERE dedup_key = '1'")
    held = {jobs[0].job_id, jobs[2].job_id}
    assert await queue.heartbeat_all(queue_pool, jobs) == held
    assert await queue.complete_all(queue_pool, jobs) == held
    assert query(b"SELECT state FROM jobs WHERE dedup_key = '1'") == ("running",)
    assert query(b"SELECT count(*) FROM jobs WHERE state = 'done'") == (2,)


async def test_jobs_of_one_workspace_are_done_together(
    enqueue: Enqueue, queue_pool: db.Pool, query: Query
) -> None:
    for number in range(3):
        for workspace_id in (WORKSPACE, "other"):
            await enqueue("rendering", str(number), workspace_id=workspace_id)
    done: dict[str, list[str]] = {}

    async def together(jobs: Sequence[Job]) -> None:
        done[jobs[0].workspace_id] = keys(jobs)
        assert {job.workspace_id for job in jobs} == {jobs[0].workspace_id}

    async with running(queue_pool, {"rendering": never}, {"rendering": together}):
        await until(lambda: ended(query))
    assert done == {WORKSPACE: ["0", "1", "2"], "other": ["0", "1", "2"]}
    assert query(b"SELECT count(*) FROM jobs WHERE state = 'done'") == (6,)


async def test_a_batch_that_goes_wrong_is_done_again_job_by_job(
    enqueue: Enqueue, queue_pool: db.Pool, query: Query
) -> None:
    for key in ("good", "bad", "better"):
        await enqueue("rendering", key)
    done: list[str] = []

    async def alone(job: Job) -> None:
        if job.payload["key"] == "bad":
            raise invalid("envelope", "has no event")
        done.append(job.payload["key"])

    async def together(jobs: Sequence[Job]) -> None:
        for job in jobs:
            await alone(job)

    async with running(queue_pool, {"rendering": alone}, {"rendering": together}):
        await until(lambda: ended(query))
    assert done == ["good", "good", "better"]
    states = b"SELECT array_agg(state ORDER BY dedup_key), sum(attempts) FROM jobs"
    assert query(states) == (["dead", "done", "done"], 1)


async def test_an_outage_counts_for_no_job_of_a_batch(
    enqueue: Enqueue, queue_pool: db.Pool, query: Query
) -> None:
    for key in ("one", "two"):
        await enqueue("rendering", key)
    outages = iter([True])
    counted: list[int] = []

    async def together(jobs: Sequence[Job]) -> None:
        counted.extend(job.attempts for job in jobs)
        if next(outages, False):
            reason = error_pb2.ERROR_REASON_EMBEDDER_UNAVAILABLE
            raise unavailable(reason, "The provider is away.", retry_after_seconds=0.01)

    async def alone(job: Job) -> None:
        await together([job])

    async with running(queue_pool, {"rendering": alone}, {"rendering": together}):
        await until(lambda: ended(query))
    assert counted == [0, 0, 0, 0]


async def test_a_job_of_a_batch_that_somebody_else_took_keeps_the_others_from_nothing(
    enqueue: Enqueue, queue_pool: db.Pool, query: Query
) -> None:
    for key in ("mine", "taken"):
        await enqueue("rendering", key)
    began = asyncio.Event()

    async def alone(job: Job) -> None:
        pass

    async def together(jobs: Sequence[Job]) -> None:
        began.set()
        await asyncio.Event().wait()

    async with running(queue_pool, {"rendering": alone}, {"rendering": together}):
        await began.wait()
        query(
            b"UPDATE jobs SET claim_number = claim_number + 1, "
            b"heartbeat_at = now() + interval '1 hour' WHERE dedup_key = 'taken'"
        )
        await until(lambda: query(b"SELECT count(*) FROM jobs WHERE state = 'done'") == (1,))
    assert query(b"SELECT state FROM jobs WHERE dedup_key = 'taken'") == ("running",)


async def test_jobs_that_wait_for_their_batch_are_kept_alive(
    enqueue: Enqueue, queue_pool: db.Pool, query: Query
) -> None:
    for key in ("one", "two"):
        for workspace_id in (WORKSPACE, "other"):
            await enqueue("rendering", key, workspace_id=workspace_id)
    over = asyncio.Event()

    async def together(jobs: Sequence[Job]) -> None:
        await over.wait()

    running_jobs = b"SELECT count(*) FROM jobs WHERE state = 'running'"
    oldest_beat = b"SELECT min(heartbeat_at) FROM jobs"
    async with running(queue_pool, {"rendering": never}, {"rendering": together}):
        await until(lambda: query(running_jobs) == (4,))
        claimed_at = query(oldest_beat)
        await until(lambda: query(oldest_beat) > claimed_at)
        over.set()
        await until(lambda: ended(query))


async def test_a_stopped_loop_gives_back_what_it_claimed_and_did_not_begin(
    enqueue: Enqueue, queue_pool: db.Pool, query: Query
) -> None:
    for key in ("one", "two"):
        for workspace_id in (WORKSPACE, "other"):
            await enqueue("rendering", key, workspace_id=workspace_id)
    began, over = asyncio.Event(), asyncio.Event()
    done: list[str] = []

    async def together(jobs: Sequence[Job]) -> None:
        began.set()
        done.append(jobs[0].workspace_id)
        await over.wait()

    async with running(queue_pool, {"rendering": never}, {"rendering": together}) as loop:
        await began.wait()
        loop.stop()
        over.set()
    assert len(done) == 1
    states = b"SELECT workspace_id, array_agg(state) FROM jobs GROUP BY 1 HAVING workspace_id = %s"
    assert query(states, (done[0],)) == (done[0], ["done", "done"])
    left = WORKSPACE if done[0] == "other" else "other"
    assert query(states, (left,)) == (left, ["ready", "ready"])
