"""Claims jobs and runs them: heartbeats, outcomes, shutdown. Knows no kind of job."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence

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

Handler = Callable[[Job], Awaitable[None]]

log = structlog.get_logger("worker")


class JobLoop:
    """Runs jobs of the kinds it has handlers for until ``stop``. ``jitter`` gives [0, 1)."""

    def __init__(
        self,
        pool: db.Pool,
        handlers: Mapping[str, Handler],
        jitter: Callable[[], float],
        terms: Terms = TERMS,
    ) -> None:
        self._pool = pool
        self._handlers = handlers
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
                for job in jobs:
                    await self._run_job(job)
                if not jobs and not self._stopping.is_set():
                    await woken_within(woken, pause_seconds)

    async def _claim(self, kinds: Sequence[str]) -> tuple[list[Job], float]:
        """A job, or how long to wait before the next look."""
        try:
            return await queue.claim(self._pool, kinds, terms=self._terms), POLL_SECONDS
        except Exception as error:
            log.warning("can not claim", error=type(error).__name__)
            return [], DATABASE_AWAY_SECONDS

    async def _run_job(self, job: Job) -> None:
        log.info("claimed", job_id=job.job_id, kind=job.kind, claim=job.claim_number)
        handling = asyncio.create_task(self._handle(job))
        watching = [
            asyncio.create_task(self._until_lost(job)),
            asyncio.create_task(self._until_stopped()),
        ]
        try:
            await asyncio.wait([handling, *watching], return_when=asyncio.FIRST_COMPLETED)
            lost = watching[0].done()
        finally:
            await _cancelled(handling, *watching)
        if lost:
            log.warning("lost to another holder", job_id=job.job_id)
        else:
            await self._settle(job, handling)

    async def _handle(self, job: Job) -> None:
        with call_in_progress(Call(job.job_id, None, None)):
            await self._handlers[job.kind](job)

    async def _until_lost(self, job: Job) -> None:
        """Prove life every two seconds; ends when somebody else holds the job."""
        held = True
        while held:
            await asyncio.sleep(queue.HEARTBEAT_SECONDS)
            try:
                held = await queue.heartbeat(self._pool, job, self._terms)
            except DATABASE_AWAY:
                log.warning("heartbeat missed", job_id=job.job_id)

    async def _until_stopped(self) -> None:
        await self._stopping.wait()
        await asyncio.sleep(GRACE_SECONDS)

    async def _settle(self, job: Job, handling: asyncio.Task[None]) -> None:
        """Record the outcome. Without a database the lease lapses and the job runs again."""
        try:
            if handling.cancelled():
                held = await queue.release(self._pool, job)
                log.info("released", job_id=job.job_id, held=held)
            elif error := handling.exception():
                await self._fail(job, error)
            else:
                held = await queue.complete(self._pool, job)
                log.info("done", job_id=job.job_id, held=held)
        except DATABASE_AWAY:
            log.warning("outcome not recorded", job_id=job.job_id)

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


async def _cancelled(*tasks: asyncio.Task[None]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
