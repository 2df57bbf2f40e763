"""The RPCs about jobs: from proto, call the use case, to proto."""

from __future__ import annotations

from typing import Any

import grpc

from recall.ingest.v1 import jobs_pb2, jobs_pb2_grpc
from services.ingest import job_wire as wire
from services.ingest.claim_jobs import claim_jobs
from services.ingest.complete_job import complete_job
from services.ingest.fail_job import fail_job
from services.ingest.get_job import get_job
from services.ingest.heartbeat import heartbeat
from services.ingest.list_jobs import list_jobs
from services.ingest.resources import Resources
from services.ingest.retry_job import retry_job
from services.runtime import call as calls
from services.runtime.callers import EVERYTHING, require_whole_workspace, require_workspace

Context = grpc.aio.ServicerContext[Any, Any]

NAMES = ("JobService",)


class JobService(jobs_pb2_grpc.JobServiceServicer):
    """Hands jobs to workers that have no database."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources

    async def ClaimJobs(  # noqa: N802
        self, request: jobs_pb2.ClaimJobsRequest, context: Context
    ) -> jobs_pb2.ClaimJobsResponse:
        """See the proto. Only for callers who may read everything: jobs of any workspace come."""
        require_whole_workspace(calls.caller(), EVERYTHING)
        jobs = await claim_jobs(self._resources, request.kinds, request.limit, request.wait_seconds)
        return jobs_pb2.ClaimJobsResponse(jobs=[wire.claimed_job(job) for job in jobs])

    async def Heartbeat(  # noqa: N802
        self, request: jobs_pb2.HeartbeatRequest, context: Context
    ) -> jobs_pb2.HeartbeatResponse:
        """See the proto."""
        require_workspace(calls.caller(), request.workspace_id)
        held = await heartbeat(self._resources, wire.claim(request))
        return jobs_pb2.HeartbeatResponse(held=held)

    async def CompleteJob(  # noqa: N802
        self, request: jobs_pb2.CompleteJobRequest, context: Context
    ) -> jobs_pb2.CompleteJobResponse:
        """See the proto."""
        require_workspace(calls.caller(), request.workspace_id)
        held = await complete_job(self._resources, wire.claim(request))
        return jobs_pb2.CompleteJobResponse(held=held)

    async def FailJob(  # noqa: N802
        self, request: jobs_pb2.FailJobRequest, context: Context
    ) -> jobs_pb2.FailJobResponse:
        """See the proto."""
        require_workspace(calls.caller(), request.workspace_id)
        state = await fail_job(self._resources, wire.claim(request), wire.failed_run(request))
        return jobs_pb2.FailJobResponse(held=bool(state), is_dead=state == "dead")

    async def GetJob(  # noqa: N802
        self, request: jobs_pb2.GetJobRequest, context: Context
    ) -> jobs_pb2.GetJobResponse:
        """See the proto."""
        require_workspace(calls.caller(), request.workspace_id)
        job = await get_job(self._resources, request.workspace_id, request.job_id)
        return jobs_pb2.GetJobResponse(job=wire.job(job))

    async def ListJobs(  # noqa: N802
        self, request: jobs_pb2.ListJobsRequest, context: Context
    ) -> jobs_pb2.ListJobsResponse:
        """See the proto."""
        require_workspace(calls.caller(), request.workspace_id)
        states = wire.states(request.states)
        jobs = await list_jobs(self._resources, request.workspace_id, states, request.limit)
        return jobs_pb2.ListJobsResponse(jobs=[wire.job(job) for job in jobs])

    async def RetryJob(  # noqa: N802
        self, request: jobs_pb2.RetryJobRequest, context: Context
    ) -> jobs_pb2.RetryJobResponse:
        """See the proto."""
        require_workspace(calls.caller(), request.workspace_id)
        job = await retry_job(self._resources, request.workspace_id, request.job_id)
        return jobs_pb2.RetryJobResponse(job=wire.job(job))


def register(server: grpc.aio.Server, resources: Resources) -> None:
    """Serve jobs."""
    jobs_pb2_grpc.add_JobServiceServicer_to_server(JobService(resources), server)
