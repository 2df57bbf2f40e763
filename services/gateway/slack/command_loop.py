"""Claims commands, a few at once, and tells the queue how each run ended."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass

import grpc
import structlog

from recall.ingest.v1 import jobs_pb2
from services.gateway.clients import Stages, reach
from services.gateway.slack.posting import is_over
from services.gateway.slack.run_command import UnreadableCommandError
from services.gateway.slack.web_api import SlackAwayError, SlackBusyError, SlackRefusedError
from services.runtime.errors import CallError

KINDS = ("command",)
AT_ONCE = 4
HEARTBEAT_SECONDS = 2.0
WAIT_SECONDS = 20.0
REPORT_SECONDS = 5.0
DRAIN_SECONDS = 25.0
RETRY_SECONDS = 1.0

_INFRASTRUCTURE = (
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.DEADLINE_EXCEEDED,
    grpc.StatusCode.RESOURCE_EXHAUSTED,
)

Run = Callable[[jobs_pb2.ClaimedJob], Awaitable[None]]

log = structlog.get_logger("worker")


@dataclass(frozen=True)
class Failure:
    """What the queue is told of a failed run."""

    kind: jobs_pb2.FailureKind.ValueType
    error: str
    retry_after_seconds: float = 0.0


class CommandLoop:
    """Runs until ``stop`` is called, then lets runs in progress end."""

    def __init__(self, stages: Stages, run: Run) -> None:
        self._stages = stages
        self._run = run
        self._stopping = asyncio.Event()
        self._running: set[asyncio.Task[None]] = set()

    def stop(self) -> None:
        """Claim nothing more."""
        self._stopping.set()

    async def work(self) -> None:
        """Claim and run. What is cancelled at the end is claimed by another worker."""
        try:
            while not self._stopping.is_set():
                await self._wait_for_a_slot()
                for job in await self._claimed():
                    task = asyncio.create_task(self._one(job))
                    self._running.add(task)
                    task.add_done_callback(self._running.discard)
            if self._running:
                await asyncio.wait(self._running, timeout=DRAIN_SECONDS)
        finally:
            for task in self._running:
                task.cancel()
            await asyncio.gather(*self._running, return_exceptions=True)

    async def _wait_for_a_slot(self) -> None:
        while len(self._running) >= AT_ONCE:
            await asyncio.wait(self._running, return_when=asyncio.FIRST_COMPLETED)

    async def _claimed(self) -> list[jobs_pb2.ClaimedJob]:
        """Jobs, or none once the wait is over, ingest is away, or the loop is to stop."""
        claiming = asyncio.create_task(self._claim())
        stopping = asyncio.create_task(self._stopping.wait())
        try:
            await asyncio.wait((claiming, stopping), return_when=asyncio.FIRST_COMPLETED)
            return claiming.result() if claiming.done() else []
        except CallError:
            await asyncio.sleep(RETRY_SECONDS)
            return []
        finally:
            for task in (claiming, stopping):
                task.cancel()
            await asyncio.gather(claiming, stopping, return_exceptions=True)

    async def _claim(self) -> list[jobs_pb2.ClaimedJob]:
        request = jobs_pb2.ClaimJobsRequest(
            kinds=KINDS, limit=AT_ONCE - len(self._running), wait_seconds=WAIT_SECONDS
        )
        seconds = WAIT_SECONDS + REPORT_SECONDS
        return list((await reach("ingest", self._stages.jobs.ClaimJobs, request, seconds)).jobs)

    async def _one(self, job: jobs_pb2.ClaimedJob) -> None:
        running = asyncio.ensure_future(self._run(job))
        beating = asyncio.create_task(self._beat(job, running))
        try:
            failure = await _failure_of(running, job)
        finally:
            beating.cancel()
        # An unreported end is no loss: the job is claimed again and finds what was delivered.
        with suppress(CallError):
            await self._report(job, failure)

    async def _beat(self, job: jobs_pb2.ClaimedJob, running: asyncio.Future[None]) -> None:
        """Prove life; a run that somebody else has taken over ends here."""
        request = jobs_pb2.HeartbeatRequest(
            workspace_id=job.workspace_id, job_id=job.job_id, claim_number=job.claim_number
        )
        while True:
            await asyncio.sleep(HEARTBEAT_SECONDS)
            with suppress(CallError):
                beat = self._stages.jobs.Heartbeat
                if not (await reach("ingest", beat, request, HEARTBEAT_SECONDS)).held:
                    running.cancel()
                    return

    async def _report(self, job: jobs_pb2.ClaimedJob, failure: Failure | None) -> None:
        if failure is None:
            done = jobs_pb2.CompleteJobRequest(
                workspace_id=job.workspace_id, job_id=job.job_id, claim_number=job.claim_number
            )
            await reach("ingest", self._stages.jobs.CompleteJob, done, REPORT_SECONDS)
            return
        failed = jobs_pb2.FailJobRequest(
            workspace_id=job.workspace_id,
            job_id=job.job_id,
            claim_number=job.claim_number,
            kind=failure.kind,
            error=failure.error,
            retry_after_seconds=failure.retry_after_seconds,
        )
        await reach("ingest", self._stages.jobs.FailJob, failed, REPORT_SECONDS)


async def _failure_of(running: asyncio.Future[None], job: jobs_pb2.ClaimedJob) -> Failure | None:
    try:
        await running
    except Exception as error:
        failure = failure_of(error)
        expected = failure.kind != jobs_pb2.FAILURE_KIND_JOB
        log.warning("command failed", job=job.job_id, cause=failure.error, exc_info=not expected)
        return failure
    return None


def failure_of(error: Exception) -> Failure:
    """Whose fault a failed run was, in words without anybody's messages."""
    if isinstance(error, CallError):
        return _call_failure(error)
    if isinstance(error, SlackBusyError):
        kind = jobs_pb2.FAILURE_KIND_INFRASTRUCTURE
        return Failure(kind, str(error), error.retry_after_seconds)
    if isinstance(error, SlackAwayError):
        return Failure(jobs_pb2.FAILURE_KIND_INFRASTRUCTURE, str(error))
    if isinstance(error, SlackRefusedError):
        over = is_over(error)
        kind = jobs_pb2.FAILURE_KIND_PERMANENT if over else jobs_pb2.FAILURE_KIND_JOB
        return Failure(kind, str(error))
    if isinstance(error, UnreadableCommandError):
        return Failure(jobs_pb2.FAILURE_KIND_PERMANENT, str(error))
    return Failure(jobs_pb2.FAILURE_KIND_JOB, type(error).__name__)


def _call_failure(error: CallError) -> Failure:
    if error.code in _INFRASTRUCTURE:
        kind = jobs_pb2.FAILURE_KIND_INFRASTRUCTURE
        return Failure(kind, error.reason_name, error.retry_after_seconds or 0.0)
    gone = error.code is grpc.StatusCode.NOT_FOUND
    kind = jobs_pb2.FAILURE_KIND_PERMANENT if gone else jobs_pb2.FAILURE_KIND_JOB
    return Failure(kind, error.reason_name)
