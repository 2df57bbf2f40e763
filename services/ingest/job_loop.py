"""Claims jobs and runs them: heartbeats, outcomes, shutdown. Knows no kind of job.

Jobs of a kind that has a batch handler are claimed together and done together, one workspace at a
time. A batch that goes wrong is done again job by job, so that each gets an outcome of its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence

import grpc
import psycopg
import psycopg_pool
import structlog

from recall.error.v1 import error_pb2
from services.ingest import queue
from services.ingest.backoff import Failure, next_run
from services.ingest.queue import TERMS, Job, Terms
from services.ingest.wakeups import ANY_KIND, POLL_SECONDS, Wakeups, woken_within
from services.runtime import db
from services.runtime.call import Call
from services.runtime.errors import CallError
from services.runtime.interceptors import as_call_error, call_in_progress

# At most the retry of an infrastructure failure, so that an outage's end is noticed as fast.
DATABASE_AWAY_SECONDS = 2.0
# What a job in progress gets to finish after SIGTERM; then its lease is released.
GRACE_SECONDS = 3.0

DATABASE_AWAY = (psycopg.OperationalError, psycopg_pool.PoolTimeout)

_SETUP_REASONS = (
    error_pb2.ERROR_REASON_EMBEDDER_UNAVAILABLE,
    error_pb2.ERROR_REASON_SLACK_NOT_SET_UP,
)

# A batch is short enough for a person to wait for: its end is when its last job is done.
BATCH_SIZE = 32

Handler = Callable[[Job], Awaitable[None]]
# Jobs of one workspace, by turn. Whatever it raises, a second run must be harmless.
BatchHandler = Callable[[Sequence[Job]], Awaitable[None]]

NO_BATCHES: Mapping[str, BatchHandler] = {}

log = structlog.get_logger("worker")


class JobLoop:
    """Runs jobs of the kinds it has handlers for until ``stop``. ``jitter`` gives [0, 1).

    A kind in ``batch_handlers`` has a handler for one job too.
    """

    def __init__(
        self,
        pool: db.Pool,
        handlers: Mapping[str, Handler],
        jitter: Callable[[], float],
        terms: Terms = TERMS,
        batch_handlers: Mapping[str, BatchHandler] = NO_BATCHES,
    ) -> None:
        self._pool = pool
        self._handlers = handlers
        self._batch_handlers = batch_handlers
        self._batches = dict.fromkeys(batch_handlers, BATCH_SIZE)
        self._jitter = jitter
        self._terms = terms
        self._stopping = asyncio.Event()
        self._wakeups = Wakeups()

    async def run(self) -> None:
        """A slot for the kinds that compute, one for the urgent alone, one for those that wait.

        So a page of history that waits for Slack's pace keeps no other job waiting.
        """
        working = [kind for kind in self._handlers if kind not in queue.WAITING_KINDS]
        urgent = [kind for kind in self._handlers if kind in queue.URGENT_KINDS]
        waiting = [kind for kind in self._handlers if kind in queue.WAITING_KINDS]
        slots = (working, urgent, waiting)
        async with asyncio.TaskGroup() as group:
            for kinds in filter(None, slots):
                group.create_task(self._run_slot(kinds))

    def stop(self) -> None:
        """Claim nothing more; a job in progress has ``GRACE_SECONDS`` to finish."""
        self._stopping.set()
        self._wakeups.close()

    def wake(self, kind: str = ANY_KIND) -> None:
        """Look for a job of this kind now instead of at the next poll."""
        self._wakeups.wake(kind)

    async def _run_slot(self, kinds: Sequence[str]) -> None:
        with self._wakeups.waiting(kinds) as woken:
            while not self._stopping.is_set():
                woken.clear()
                jobs, pause_seconds = await self._claim(kinds)
                for batch, waiting in _by_workspace(jobs):
                    await self._run(batch, waiting)
                if not jobs and not self._stopping.is_set():
                    await woken_within(woken, pause_seconds)

    async def _claim(self, kinds: Sequence[str]) -> tuple[list[Job], float]:
        """A job or a batch, and how long to wait before the next look when there is none."""
        try:
            jobs = await queue.claim(self._pool, kinds, terms=self._terms, batches=self._batches)
            return jobs, POLL_SECONDS
        except Exception as error:
            log.warning("can not claim", error=type(error).__name__)
            return [], DATABASE_AWAY_SECONDS

    async def _run(self, jobs: Sequence[Job], waiting: Sequence[Job]) -> None:
        """Run jobs together; those that ``waiting`` names are kept alive meanwhile."""
        if self._stopping.is_set():
            await self._settle(jobs, None)
            return
        for job in jobs:
            log.info("claimed", job_id=job.job_id, kind=job.kind, claim=job.claim_number)
        handling = asyncio.create_task(self._handle(jobs))
        lost = await self._watch(handling, jobs, waiting)
        if len(jobs) > 1 and (lost or _is_somebodys_fault(handling)):
            log.warning("done again one by one", job_id=jobs[0].job_id, jobs=len(jobs), lost=lost)
            for number, job in enumerate(jobs, start=1):
                await self._run([job], [*jobs[number:], *waiting])
        elif lost:
            log.warning("lost to another holder", job_id=jobs[0].job_id)
        else:
            await self._settle(jobs, handling)

    async def _watch(
        self, handling: asyncio.Task[None], jobs: Sequence[Job], waiting: Sequence[Job]
    ) -> bool:
        """Wait for the end of the work, which is stopped when one of its jobs is lost: True."""
        watching = [
            asyncio.create_task(self._until_lost(jobs, waiting)),
            asyncio.create_task(self._until_stopped()),
        ]
        try:
            await asyncio.wait([handling, *watching], return_when=asyncio.FIRST_COMPLETED)
            return watching[0].done()
        finally:
            await _cancelled(handling, *watching)

    async def _handle(self, jobs: Sequence[Job]) -> None:
        first = jobs[0]
        with call_in_progress(Call(first.job_id, None, None)):
            if len(jobs) == 1:
                await self._handlers[first.kind](first)
            else:
                await self._batch_handlers[first.kind](jobs)

    async def _until_lost(self, jobs: Sequence[Job], waiting: Sequence[Job]) -> None:
        """Prove life every two seconds; ends when somebody else holds one of the jobs."""
        working = {job.job_id for job in jobs}
        held = working
        while working <= held:
            await asyncio.sleep(queue.HEARTBEAT_SECONDS)
            try:
                held = await queue.heartbeat_all(self._pool, [*jobs, *waiting], self._terms)
            except DATABASE_AWAY:
                log.warning("heartbeat missed", job_id=jobs[0].job_id)

    async def _until_stopped(self) -> None:
        await self._stopping.wait()
        await asyncio.sleep(GRACE_SECONDS)

    async def _settle(self, jobs: Sequence[Job], handling: asyncio.Task[None] | None) -> None:
        """Record the outcome; ``handling`` is None when the work was not begun.

        Without a database the lease lapses and the job runs again.
        """
        try:
            if handling is None or handling.cancelled():
                for job in jobs:
                    held = await queue.release(self._pool, job)
                    log.info("released", job_id=job.job_id, held=held)
            elif error := handling.exception():
                for job in jobs:
                    await self._fail(job, error)
            else:
                completed = await queue.complete_all(self._pool, jobs)
                for job in jobs:
                    log.info("done", job_id=job.job_id, held=job.job_id in completed)
        except DATABASE_AWAY:
            log.warning("outcome not recorded", job_id=jobs[0].job_id, jobs=len(jobs))

    async def _fail(self, job: Job, error: BaseException) -> None:
        if not isinstance(error, Exception):
            raise error
        call_error = as_call_error(error, job.job_id)
        following = next_run(
            failure_of(call_error),
            job.attempts,
            job.max_attempts,
            jitter=self._jitter(),
            retry_after_seconds=call_error.retry_after_seconds,
        )
        log.warning(
            "failed",
            job_id=job.job_id,
            detail=call_error.message,
            attempts=following.attempts,
            delay_seconds=following.delay_seconds,
            exc_info=error if call_error.code is grpc.StatusCode.INTERNAL else None,
        )
        await queue.fail(self._pool, job, following, call_error.message)


def failure_of(error: CallError) -> Failure:
    """Whose fault a failed run was."""
    if error.code is grpc.StatusCode.UNAVAILABLE:
        return Failure.INFRASTRUCTURE
    if error.reason in _SETUP_REASONS:
        return Failure.SETUP
    if error.code is grpc.StatusCode.INVALID_ARGUMENT:
        return Failure.PERMANENT
    return Failure.JOB


def _by_workspace(jobs: Sequence[Job]) -> Iterator[tuple[list[Job], list[Job]]]:
    """Claimed jobs as batches of one workspace each, with the jobs that wait for their batch."""
    batches: dict[str, list[Job]] = {}
    for job in jobs:
        batches.setdefault(job.workspace_id, []).append(job)
    waiting = list(batches.values())
    while waiting:
        batch = waiting.pop(0)
        yield batch, [job for later in waiting for job in later]


def _is_somebodys_fault(handling: asyncio.Task[None]) -> bool:
    """Whether work failed for another reason than that something it needs was away."""
    error = None if handling.cancelled() else handling.exception()
    if not isinstance(error, Exception):
        return False
    return failure_of(as_call_error(error, "")) is not Failure.INFRASTRUCTURE


async def _cancelled(*tasks: asyncio.Task[None]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
