"""The job queue: claims among many ready jobs of many workspaces, and how soon a job starts."""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psycopg

from bench.machine import machine
from evals.own_stack import environment_of
from evals.tables import table
from recall.ingest.v1 import ingest_pb2_grpc, jobs_pb2, jobs_pb2_grpc, slack_pb2
from services.runtime.callers import FILE_NAME, Callers
from services.runtime.client import Peer
from services.stack.postgres import EmbeddedPostgres
from services.stack.stack import Stack

WORKSPACES, JOBS = 1_000, 100_000
CLAIMERS = (1, 4, 16)
SECONDS = 8.0
STARTS = 50
# Of the median claim with one claimer, as it sees it.
CLAIM_LIMIT_MILLISECONDS = 10.0
START_LIMIT_MILLISECONDS = 200.0

_KEPT_RUNNING = ("postgres", "ingest")
_FILL_WORKSPACES = """
INSERT INTO workspaces (workspace_id, source, team_id)
SELECT 'bench-' || n, 'slack', 'T' || n FROM generate_series(0, %s) AS n"""
_FILL_JOBS = """
INSERT INTO jobs (workspace_id, job_id, kind, dedup_key, payload, turn)
SELECT 'bench-' || (1 + n %% %s), gen_random_uuid()::text, 'event', n::text, '{}', n / %s
FROM generate_series(0, %s - 1) AS n"""
# A command waits for older events of its workspace, so one workspace has none.
_INSTALL = """
INSERT INTO installations (workspace_id, installation_id, team_id, bot_user_id, bot_token)
VALUES ('bench-0', 'bench', 'T0', 'U1', 'none')"""

EXPLANATION = """\
claim, done   one call of ClaimJobs (a job is there) and of CompleteJob, as the caller sees them.
jobs a second claimed and completed, all claimers together, for a while.
start         from the call of RecordCommand to the claimed job in the hands of a waiting caller, on
              an idle queue.
One ingest process; the callers share the machine with it and with the database."""

Say = Callable[[str], None]


@dataclass
class Figures:
    """Milliseconds of every call."""

    claims: list[float] = field(default_factory=list)
    completions: list[float] = field(default_factory=list)


def job_queue(port_base: int, say: Say) -> bool:
    """Measure on a stack of its own and print tables. True within the limits.

    Raises StackError when the stack does not start.
    """
    print(f"The job queue: {JOBS} ready jobs of {WORKSPACES} workspaces\n{machine()}\n")
    with tempfile.TemporaryDirectory(prefix="recall-bench-") as folder:
        home = Path(folder, "home")
        stack = Stack(home, environment_of(os.environ, home, port_base))
        try:
            stack.up(say)
            stack.stop([name for name in stack.running() if name not in _KEPT_RUNNING])
            say(f"recording {JOBS} jobs")
            _fill(stack)
            return asyncio.run(_measure(stack, say))
        finally:
            stack.down(say)


def _fill(stack: Stack) -> None:
    url = EmbeddedPostgres(stack.home / "postgres", stack.port("postgres")).url()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(_FILL_WORKSPACES.encode(), (WORKSPACES,))
        connection.execute(_FILL_JOBS.encode(), (WORKSPACES, WORKSPACES, JOBS))
        connection.execute(_INSTALL.encode())


async def _measure(stack: Stack, say: Say) -> bool:
    async with AsyncExitStack() as open_peers:
        peers = [await open_peers.enter_async_context(_peer(stack)) for _ in range(max(CLAIMERS))]
        # The first call of a connection opens it, and the first claims warm caches up.
        await asyncio.gather(*(_work(peer, 0.5, Figures()) for peer in peers))
        results = []
        for claimers in CLAIMERS:
            say(f"{claimers} claiming for {SECONDS:.0f} s")
            results.append(await _claiming(peers[:claimers]))
        say(f"recording {STARTS} commands, one at a time")
        starts = [await _start(peers[0], peers[1], number) for number in range(STARTS)]
    rows = [_row(claimers, each) for claimers, each in zip(CLAIMERS, results, strict=True)]
    header = ("claimers", "jobs/s", "claim ms", "p99", "done ms", "p99")
    print("\n".join(table(header, rows)))
    print(f"\nstart: median {_share(starts, 0.5):.1f} ms, worst {max(starts):.1f} ms of {STARTS}\n")
    print(EXPLANATION)
    is_fast = _share(results[0].claims, 0.5) <= CLAIM_LIMIT_MILLISECONDS
    return is_fast and max(starts) <= START_LIMIT_MILLISECONDS


@asynccontextmanager
async def _peer(stack: Stack) -> AsyncIterator[Peer]:
    callers = Callers(stack.home / FILE_NAME)
    peer = Peer(f"127.0.0.1:{stack.port('ingest')}", lambda: callers.token_of("operator"))
    yield peer
    await peer.close()


async def _claiming(peers: Sequence[Peer]) -> Figures:
    figures = Figures()
    await asyncio.gather(*(_work(peer, SECONDS, figures) for peer in peers))
    return figures


async def _work(peer: Peer, seconds: float, figures: Figures) -> None:
    """Claim and complete one job after the other."""
    jobs = jobs_pb2_grpc.JobServiceStub(peer.channel())
    request = jobs_pb2.ClaimJobsRequest(kinds=["event"])
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        begin = time.monotonic()
        (job,) = (await jobs.ClaimJobs(request)).jobs
        claimed = time.monotonic()
        await jobs.CompleteJob(_completion(job))
        figures.claims.append((claimed - begin) * 1000)
        figures.completions.append((time.monotonic() - claimed) * 1000)


async def _start(waiter: Peer, recorder: Peer, number: int) -> float:
    """Milliseconds from recording a command to having it, waiting all the while."""
    jobs = jobs_pb2_grpc.JobServiceStub(waiter.channel())
    ingest = ingest_pb2_grpc.IngestServiceStub(recorder.channel())
    request = jobs_pb2.ClaimJobsRequest(kinds=["command"], wait_seconds=20)
    waiting = asyncio.create_task(_claimed(jobs, request))
    await asyncio.sleep(0.15)
    begin = time.monotonic()
    await ingest.RecordCommand(
        slack_pb2.RecordCommandRequest(
            team_id="T0",
            dedup_key=f"bench {number}",
            command=slack_pb2.SlackCommand(door=slack_pb2.COMMAND_DOOR_SLASH, text="help"),
        )
    )
    job, claimed = await waiting
    await jobs.CompleteJob(_completion(job))
    return (claimed - begin) * 1000


async def _claimed(
    jobs: jobs_pb2_grpc.JobServiceAsyncStub, request: jobs_pb2.ClaimJobsRequest
) -> tuple[jobs_pb2.ClaimedJob, float]:
    (job,) = (await jobs.ClaimJobs(request)).jobs
    return job, time.monotonic()


def _completion(job: jobs_pb2.ClaimedJob) -> jobs_pb2.CompleteJobRequest:
    return jobs_pb2.CompleteJobRequest(
        workspace_id=job.workspace_id, job_id=job.job_id, claim_number=job.claim_number
    )


def _row(claimers: int, figures: Figures) -> tuple[str, ...]:
    return (
        str(claimers),
        f"{len(figures.claims) / SECONDS:.0f}",
        *(f"{_share(figures.claims, share):.1f}" for share in (0.5, 0.99)),
        *(f"{_share(figures.completions, share):.1f}" for share in (0.5, 0.99)),
    )


def _share(values: Sequence[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]
