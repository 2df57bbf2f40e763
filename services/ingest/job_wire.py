"""Proto to values and values to proto, for jobs."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Protocol

from recall.ingest.v1 import jobs_pb2
from services.corpus import timestamp
from services.ingest.backoff import Failure
from services.ingest.fail_job import FailedRun
from services.ingest.jobs import JobRow
from services.ingest.queue import Claim, Job
from services.runtime.errors import invalid

_STATES = {
    "ready": jobs_pb2.JOB_STATE_READY,
    "running": jobs_pb2.JOB_STATE_RUNNING,
    "done": jobs_pb2.JOB_STATE_DONE,
    "dead": jobs_pb2.JOB_STATE_DEAD,
}
_STATE_NAMES = {state: name for name, state in _STATES.items()}
_FAILURES = {
    jobs_pb2.FAILURE_KIND_UNSPECIFIED: Failure.JOB,
    jobs_pb2.FAILURE_KIND_JOB: Failure.JOB,
    jobs_pb2.FAILURE_KIND_INFRASTRUCTURE: Failure.INFRASTRUCTURE,
    jobs_pb2.FAILURE_KIND_PERMANENT: Failure.PERMANENT,
}


class _NamesAClaim(Protocol):
    workspace_id: str
    job_id: str
    claim_number: int


def claim(request: _NamesAClaim) -> Claim:
    """The claim that a request names."""
    return Claim(request.workspace_id, request.job_id, request.claim_number)


def claimed_job(job: Job) -> jobs_pb2.ClaimedJob:
    """A claimed job for the wire."""
    return jobs_pb2.ClaimedJob(
        workspace_id=job.workspace_id,
        job_id=job.job_id,
        kind=job.kind,
        payload_json=json.dumps(job.payload, ensure_ascii=False).encode(),
        claim_number=job.claim_number,
        attempts=job.attempts,
        max_attempts=job.max_attempts,
        trace_context=job.trace_context,
    )


def failed_run(request: jobs_pb2.FailJobRequest) -> FailedRun:
    """What went wrong. Raises CallError INVALID_ARGUMENT."""
    if request.kind not in _FAILURES:
        raise invalid("kind", "must be a known kind of failure")
    if not 0 <= request.retry_after_seconds < float("inf"):
        raise invalid("retry_after_seconds", "must be seconds, or 0")
    return FailedRun(_FAILURES[request.kind], request.error, request.retry_after_seconds or None)


def states(wanted: Iterable[jobs_pb2.JobState.ValueType]) -> list[str]:
    """Names of states. Raises CallError INVALID_ARGUMENT."""
    wanted = list(wanted)
    if any(state not in _STATE_NAMES for state in wanted):
        raise invalid("states", "must name states of jobs")
    return [_STATE_NAMES[state] for state in wanted]


def job(row: JobRow) -> jobs_pb2.Job:
    """A job for the wire."""
    return jobs_pb2.Job(
        workspace_id=row.workspace_id,
        job_id=row.job_id,
        kind=row.kind,
        state=_STATES[row.state],
        attempts=row.attempts,
        max_attempts=row.max_attempts,
        last_error=row.last_error,
        created_at=timestamp(row.created_at),
        run_at=timestamp(row.run_at),
        finished_at=timestamp(row.finished_at),
    )
