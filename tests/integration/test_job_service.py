"""Rules of the job service: two ingest processes on one queue, over real gRPC."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import grpc
import pytest

from recall.error.v1 import error_pb2
from recall.ingest.v1 import jobs_pb2, jobs_pb2_grpc
from services.corpus import instant
from services.ingest import queue
from services.ingest.queue import NewJob, Terms
from services.ingest.resources import Resources
from services.ingest.service import servicers
from services.ingest.upkeep import Upkeep
from services.ingest.wakeups import Wakeups, listen
from services.runtime import db
from tests.conftest import Serve
from tests.integration.ingest_fixtures import Rows, call_fails
from tests.waiting import until

W = "beacon"
WAIT_SECONDS = 30.0

Stub: TypeAlias = "jobs_pb2_grpc.JobServiceAsyncStub"
Enqueue = Callable[..., Awaitable[None]]
Start = Callable[..., Awaitable["Process"]]


@dataclass
class Process:
    """One ingest process and its clients' view of it."""

    jobs: Stub
    wakeups: Wakeups

    async def claim(
        self, *kinds: str, limit: int = 0, wait_seconds: float = 0.0
    ) -> list[jobs_pb2.ClaimedJob]:
        """ClaimJobs."""
        request = jobs_pb2.ClaimJobsRequest(
            kinds=kinds or ("event",), limit=limit, wait_seconds=wait_seconds
        )
        reply = await self.jobs.ClaimJobs(request, timeout=wait_seconds + 30)
        return list(reply.jobs)

    async def claim_one(self, *kinds: str) -> jobs_pb2.ClaimedJob:
        """ClaimJobs of a job that is there."""
        (job,) = await self.claim(*kinds)
        return job

    async def complete(self, job: jobs_pb2.ClaimedJob) -> bool:
        """CompleteJob under the claim."""
        return (await self.jobs.CompleteJob(jobs_pb2.CompleteJobRequest(**claim_of(job)))).held

    async def heartbeat(self, job: jobs_pb2.ClaimedJob) -> bool:
        """Heartbeat under the claim."""
        return (await self.jobs.Heartbeat(jobs_pb2.HeartbeatRequest(**claim_of(job)))).held

    async def fail(self, job: jobs_pb2.ClaimedJob, **fields: Any) -> jobs_pb2.FailJobResponse:
        """FailJob under the claim."""
        return await self.jobs.FailJob(jobs_pb2.FailJobRequest(**claim_of(job), **fields))

    async def get(self, job_id: str, workspace_id: str = W) -> jobs_pb2.Job:
        """GetJob."""
        request = jobs_pb2.GetJobRequest(workspace_id=workspace_id, job_id=job_id)
        return (await self.jobs.GetJob(request)).job

    async def listed(self, **fields: Any) -> list[jobs_pb2.Job]:
        """ListJobs."""
        request = jobs_pb2.ListJobsRequest(workspace_id=W, **fields)
        return list((await self.jobs.ListJobs(request)).jobs)

    async def retry(self, job_id: str) -> jobs_pb2.Job:
        """RetryJob."""
        request = jobs_pb2.RetryJobRequest(workspace_id=W, job_id=job_id)
        return (await self.jobs.RetryJob(request)).job


def claim_of(job: jobs_pb2.ClaimedJob) -> dict[str, Any]:
    return {
        "workspace_id": job.workspace_id,
        "job_id": job.job_id,
        "claim_number": job.claim_number,
    }


@pytest.fixture
async def start(
    resources: Resources, upkeep: Upkeep, serve: Serve, database_url: str
) -> AsyncIterator[Start]:
    """Start one more ingest process; returns once it hears of jobs."""
    url = db.url_as_role(database_url, db.QUEUE_ROLE)

    @asynccontextmanager
    async def process(terms: Terms) -> AsyncIterator[Process]:
        wakeups = Wakeups()
        own = replace(resources, job_terms=terms, wakeups=wakeups, jitter=lambda: 0.0)
        with wakeups.waiting(()) as connected:
            listening = asyncio.create_task(listen(url, wakeups.wake))
            await connected.wait()
        async with serve(servicers(own, upkeep)) as peer:
            channel: Any = peer.channel()
            yield Process(jobs_pb2_grpc.JobServiceStub(channel), wakeups)
        listening.cancel()

    async with AsyncExitStack() as stack:

        async def start_process(terms: Terms = queue.TERMS) -> Process:
            return await stack.enter_async_context(process(terms))

        yield start_process


@pytest.fixture
async def process(start: Start) -> Process:
    """One ingest process."""
    return await start()


@pytest.fixture
def enqueue(resources: Resources, rows: Rows) -> Enqueue:
    """Record a job in a workspace of its own or in W, as a writer does."""

    async def record(kind: str = "event", key: str = "k", workspace_id: str = W) -> None:
        rows.execute(
            "INSERT INTO workspaces (workspace_id, source) VALUES (%s, 'slack') "
            "ON CONFLICT DO NOTHING",
            workspace_id,
        )
        async with db.writing(resources.pool, workspace_id) as connection:
            await queue.enqueue(connection, workspace_id, NewJob(kind, key, {"key": key}))

    return record


async def test_a_claimed_job_carries_its_payload_and_its_counts(
    process: Process, enqueue: Enqueue
) -> None:
    await enqueue("command", "gänseblümchen")
    job = await process.claim_one("command")
    assert json.loads(job.payload_json) == {"key": "gänseblümchen"}
    assert (job.workspace_id, job.kind, job.attempts, job.max_attempts) == (W, "command", 0, 8)


async def test_two_processes_never_hand_out_one_job(start: Start, enqueue: Enqueue) -> None:
    first, second = await start(), await start()
    for number in range(12):
        await enqueue(key=str(number))
    claims = [each.claim(limit=4) for each in (first, second) for _ in range(4)]
    found = [job.job_id for jobs in await asyncio.gather(*claims) for job in jobs]
    assert len(found) == len(set(found)) == 12


async def test_a_claim_takes_only_the_kinds_it_names_and_no_more_than_it_wants(
    process: Process, enqueue: Enqueue
) -> None:
    for key in "abc":
        await enqueue("event", key)
        await enqueue("embedding", key)
    jobs = await process.claim("command", "embedding", limit=2)
    assert [job.kind for job in jobs] == ["embedding", "embedding"]


async def test_a_waiting_claim_gets_the_job_that_is_recorded_meanwhile(
    start: Start, enqueue: Enqueue
) -> None:
    first, second = await start(), await start()
    await enqueue("backfill", "not wanted")
    waiting = [
        asyncio.create_task(each.claim(wait_seconds=WAIT_SECONDS)) for each in (first, second)
    ]
    await asyncio.sleep(0.1)
    await enqueue("event", "first")
    await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    await enqueue("event", "second")
    found = [job for jobs in await asyncio.gather(*waiting) for job in jobs]
    assert {json.loads(job.payload_json)["key"] for job in found} == {"first", "second"}


async def test_a_waiting_claim_gets_a_job_whose_time_comes(
    process: Process, enqueue: Enqueue, rows: Rows
) -> None:
    await enqueue()
    rows.execute("UPDATE jobs SET run_at = now() + interval '0.2 s'")
    assert await process.claim() == []
    assert len(await process.claim(wait_seconds=WAIT_SECONDS)) == 1


async def test_a_command_that_waited_for_an_event_goes_to_a_waiting_claim(
    process: Process, enqueue: Enqueue
) -> None:
    await enqueue("event")
    await enqueue("command")
    event = await process.claim_one("event")
    waiting = asyncio.create_task(process.claim("command", wait_seconds=WAIT_SECONDS))
    await asyncio.sleep(0.1)
    assert not waiting.done()
    await process.complete(event)
    assert [job.kind for job in await waiting] == ["command"]


async def test_an_empty_wait_ends_with_no_job_before_the_callers_deadline(
    process: Process,
) -> None:
    request = jobs_pb2.ClaimJobsRequest(kinds=["event"], wait_seconds=WAIT_SECONDS)
    assert not (await process.jobs.ClaimJobs(request, timeout=1.0)).jobs
    assert await process.claim(wait_seconds=0.05) == []


async def test_a_process_that_stops_ends_the_waits(process: Process) -> None:
    waiting = asyncio.create_task(process.claim(wait_seconds=WAIT_SECONDS))
    await asyncio.sleep(0.1)
    process.wakeups.close()
    assert await waiting == []


async def test_one_workspace_s_backlog_does_not_starve_two_others(
    start: Start, enqueue: Enqueue
) -> None:
    first, second = await start(), await start()
    for number in range(40):
        await enqueue(key=str(number))
    held = [await first.claim_one() for _ in range(5)]
    await enqueue(workspace_id="harbour")
    await enqueue(workspace_id="meridian")
    following = [await each.claim_one() for each in (first, second, first)]
    assert {"harbour", "meridian"} <= {job.workspace_id for job in following}
    assert {job.workspace_id for job in held} == {W}


async def test_a_job_runs_again_once_its_holder_fell_silent_and_the_late_holder_is_refused(
    start: Start, enqueue: Enqueue
) -> None:
    process = await start(Terms(missed_seconds=0.3))
    await enqueue()
    former = await process.claim_one()
    assert await process.claim() == []
    (current,) = await process.claim(wait_seconds=WAIT_SECONDS)
    assert current.job_id == former.job_id and current.claim_number == former.claim_number + 1
    assert not await process.heartbeat(former)
    assert not await process.complete(former)
    assert not (await process.fail(former, error="late")).held
    assert await process.complete(current)
    assert (await process.get(current.job_id)).state == jobs_pb2.JOB_STATE_DONE


async def test_a_holder_that_proves_life_keeps_its_job(start: Start, enqueue: Enqueue) -> None:
    process = await start(Terms(missed_seconds=1.5))
    await enqueue()
    job = await process.claim_one()
    for _ in range(20):
        await asyncio.sleep(0.1)
        assert await process.heartbeat(job)
    assert await process.claim() == []
    assert await process.complete(job)


@pytest.mark.parametrize(
    ("failure", "state", "attempts"),
    [
        (jobs_pb2.FAILURE_KIND_JOB, jobs_pb2.JOB_STATE_READY, 1),
        (jobs_pb2.FAILURE_KIND_UNSPECIFIED, jobs_pb2.JOB_STATE_READY, 1),
        (jobs_pb2.FAILURE_KIND_INFRASTRUCTURE, jobs_pb2.JOB_STATE_READY, 0),
        (jobs_pb2.FAILURE_KIND_PERMANENT, jobs_pb2.JOB_STATE_DEAD, 1),
    ],
)
async def test_whose_fault_it_was_decides_what_follows(
    process: Process, enqueue: Enqueue, failure: Any, state: int, attempts: int
) -> None:
    await enqueue()
    claimed = await process.claim_one()
    reply = await process.fail(claimed, kind=failure, error="It broke.")
    assert (reply.held, reply.is_dead) == (True, state == jobs_pb2.JOB_STATE_DEAD)
    job = await process.get(claimed.job_id)
    assert (job.state, job.attempts, job.last_error) == (state, attempts, "It broke.")


async def test_a_wait_that_the_other_side_asked_for_is_kept(
    process: Process, enqueue: Enqueue
) -> None:
    await enqueue()
    claimed = await process.claim_one()
    failure = jobs_pb2.FAILURE_KIND_INFRASTRUCTURE
    await process.fail(claimed, kind=failure, error="Busy.", retry_after_seconds=90)
    job = await process.get(claimed.job_id)
    assert (instant(job.run_at) - instant(job.created_at)).total_seconds() > 60


async def test_the_last_attempt_that_fails_leaves_the_job_dead(
    start: Start, enqueue: Enqueue
) -> None:
    process = await start(Terms(max_attempts=1))
    await enqueue()
    assert (await process.fail(await process.claim_one(), error="It broke.")).is_dead


async def test_an_error_is_stored_without_what_a_database_refuses_and_not_endlessly(
    process: Process, enqueue: Enqueue
) -> None:
    await enqueue()
    claimed = await process.claim_one()
    await process.fail(claimed, error="broken\0" + "x" * 10_000)
    error = (await process.get(claimed.job_id)).last_error
    assert error.startswith("brokenxxx") and len(error) == 500


async def test_a_dead_job_that_is_retried_has_all_its_attempts_again_and_its_payload(
    process: Process, enqueue: Enqueue
) -> None:
    await enqueue()
    claimed = await process.claim_one()
    await process.fail(claimed, kind=jobs_pb2.FAILURE_KIND_PERMANENT, error="It broke.")
    waiting = asyncio.create_task(process.claim(wait_seconds=WAIT_SECONDS))
    await asyncio.sleep(0.1)
    revived = await process.retry(claimed.job_id)
    assert (revived.state, revived.attempts) == (jobs_pb2.JOB_STATE_READY, 0)
    assert not revived.HasField("finished_at")
    (again,) = await waiting
    assert again.payload_json == claimed.payload_json


@pytest.mark.parametrize("state", ["ready", "running", "done"])
async def test_only_a_dead_job_is_retried(
    process: Process, enqueue: Enqueue, rows: Rows, state: str
) -> None:
    await enqueue()
    if state != "ready":
        claimed = await process.claim_one()
        if state == "done":
            await process.complete(claimed)
    with call_fails() as errors:
        await process.retry(rows.one("SELECT job_id FROM jobs"))
    assert errors[0].code == grpc.StatusCode.FAILED_PRECONDITION
    assert f"is {state}" in errors[0].message


async def test_jobs_are_listed_newest_first_without_those_that_are_done(
    process: Process, enqueue: Enqueue
) -> None:
    for key in ("done", "dead", "running", "ready"):
        await enqueue(key=key)
    done, dead, running = [await process.claim_one() for _ in range(3)]
    await enqueue(workspace_id="other")
    await process.complete(done)
    await process.fail(dead, kind=jobs_pb2.FAILURE_KIND_PERMANENT, error="It broke.")
    found = await process.listed()
    assert [job.state for job in found] == [
        jobs_pb2.JOB_STATE_READY,
        jobs_pb2.JOB_STATE_RUNNING,
        jobs_pb2.JOB_STATE_DEAD,
    ]
    assert found[1].job_id == running.job_id
    assert [job.job_id for job in await process.listed(limit=1)] == [found[0].job_id]
    only_done = await process.listed(states=[jobs_pb2.JOB_STATE_DONE])
    assert [job.job_id for job in only_done] == [done.job_id]
    assert only_done[0].HasField("finished_at")


async def test_jobs_of_another_workspace_are_out_of_reach(
    process: Process, enqueue: Enqueue
) -> None:
    await enqueue(workspace_id="other")
    claimed = await process.claim_one()
    await enqueue("purge")
    with call_fails() as errors:
        await process.get(claimed.job_id)
    assert errors[0].code == grpc.StatusCode.NOT_FOUND
    claimed.workspace_id = W
    assert not await process.complete(claimed)


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"kinds": []}, "kinds"),
        ({"kinds": ["event", "evnt"]}, "'evnt'"),
        ({"kinds": ["event"], "limit": 33}, "limit"),
        ({"kinds": ["event"], "limit": -1}, "limit"),
        ({"kinds": ["event"], "wait_seconds": 61}, "wait_seconds"),
        ({"kinds": ["event"], "wait_seconds": float("nan")}, "wait_seconds"),
    ],
)
async def test_a_claim_that_makes_no_sense_is_refused_by_the_name_of_its_field(
    process: Process, fields: dict[str, Any], named: str
) -> None:
    with call_fails() as errors:
        await process.jobs.ClaimJobs(jobs_pb2.ClaimJobsRequest(**fields))
    assert errors[0].code == grpc.StatusCode.INVALID_ARGUMENT
    assert named in errors[0].message


CALLS: dict[str, Callable[[Stub, str], Awaitable[object]]] = {
    "GetJob": lambda s, w: s.GetJob(jobs_pb2.GetJobRequest(workspace_id=w)),
    "ListJobs": lambda s, w: s.ListJobs(jobs_pb2.ListJobsRequest(workspace_id=w)),
    "RetryJob": lambda s, w: s.RetryJob(jobs_pb2.RetryJobRequest(workspace_id=w)),
    "Heartbeat": lambda s, w: s.Heartbeat(jobs_pb2.HeartbeatRequest(workspace_id=w)),
    "CompleteJob": lambda s, w: s.CompleteJob(jobs_pb2.CompleteJobRequest(workspace_id=w)),
    "FailJob": lambda s, w: s.FailJob(jobs_pb2.FailJobRequest(workspace_id=w)),
}


@pytest.mark.parametrize("name", CALLS)
async def test_a_call_without_a_workspace_is_refused(process: Process, name: str) -> None:
    with call_fails() as errors:
        await CALLS[name](process.jobs, "")
    assert errors[0].reason == error_pb2.ERROR_REASON_INVALID_REQUEST
    assert "workspace_id" in errors[0].message


async def test_a_list_of_an_unknown_workspace_is_not_an_empty_one(process: Process) -> None:
    with call_fails() as errors:
        await CALLS["ListJobs"](process.jobs, "nowhere")
    assert errors[0].reason == error_pb2.ERROR_REASON_WORKSPACE_NOT_FOUND


async def test_a_caller_of_some_channels_claims_nothing(
    process: Process, enqueue: Enqueue, tmp_path: Path
) -> None:
    await enqueue()
    path = tmp_path / "home" / "callers.json"
    entries = json.loads(path.read_text("utf-8"))
    entries["callers"][0]["channels"] = ["C1"]
    path.write_text(json.dumps(entries), "utf-8")
    with call_fails() as errors:
        await process.claim()
    assert errors[0].reason == error_pb2.ERROR_REASON_CALLER_NOT_ALLOWED


async def test_a_caller_of_some_workspaces_claims_nothing_and_touches_only_its_own(
    process: Process, enqueue: Enqueue, tmp_path: Path
) -> None:
    await enqueue()
    path = tmp_path / "home" / "callers.json"
    entries = json.loads(path.read_text("utf-8"))
    entries["callers"][0]["workspaces"] = ["other"]
    path.write_text(json.dumps(entries), "utf-8")
    with call_fails() as errors:
        await process.claim()
    assert errors[0].reason == error_pb2.ERROR_REASON_CALLER_NOT_ALLOWED
    for call in CALLS.values():
        with call_fails() as errors:
            await call(process.jobs, W)
        assert errors[0].reason == error_pb2.ERROR_REASON_CALLER_NOT_ALLOWED


async def test_the_same_job_over_many_claims_is_completed_once(
    start: Start, enqueue: Enqueue, rows: Rows
) -> None:
    """Every holder but the last one fell silent; all of them come back at the same moment."""
    process = await start(Terms(missed_seconds=0.05))
    await enqueue()
    holders: list[jobs_pb2.ClaimedJob] = []
    while len(holders) < 5:
        holders += await process.claim(wait_seconds=WAIT_SECONDS)
    held = await asyncio.gather(*(process.complete(holder) for holder in holders))
    assert held == [False] * 4 + [True]
    await until(lambda: rows.one("SELECT state FROM jobs") == "done")
