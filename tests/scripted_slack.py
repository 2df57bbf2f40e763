"""An ingest that keeps deliveries of Slack, jobs and posts in memory, behind real gRPC."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import grpc
from google.protobuf.json_format import MessageToJson

from recall.corpus.v1 import corpus_pb2
from recall.error.v1 import error_pb2
from recall.ingest.v1 import (
    ingest_pb2,
    jobs_pb2,
    jobs_pb2_grpc,
    slack_pb2,
    slack_pb2_grpc,
)
from services.corpus import timestamp
from services.runtime.errors import CallError, invalid, not_found
from tests.scripted_stages import Script, ScriptedIngest

STATES = slack_pb2.DeliveryState
JOB_STATES = jobs_pb2.JobState


@dataclass
class StoredJob:
    """A command job; ``last_error`` and ``failures`` tell how its runs ended."""

    job_id: str
    workspace_id: str
    payload: bytes
    state: jobs_pb2.JobState.ValueType = JOB_STATES.JOB_STATE_READY
    claim_number: int = 0
    attempts: int = 0
    last_error: str = ""
    failures: list[jobs_pb2.FailureKind.ValueType] = field(default_factory=list)
    created_at: datetime = field(default_factory=lambda: datetime.now(UTC))


@dataclass
class ScriptedSlackIngest(
    ScriptedIngest,
    jobs_pb2_grpc.JobServiceServicer,
    slack_pb2_grpc.InstallationServiceServicer,
    slack_pb2_grpc.DeliveryServiceServicer,
    slack_pb2_grpc.FeedbackServiceServicer,
    slack_pb2_grpc.SettingsServiceServicer,
):
    """``teams`` maps a team to its workspace; ``tokens`` a workspace to its bot token."""

    teams: dict[str, str] = field(default_factory=dict)
    tokens: dict[str, slack_pb2.LeaseTokenResponse] = field(default_factory=dict)
    events: dict[str, slack_pb2.RecordEventRequest] = field(default_factory=dict)
    commands: dict[str, slack_pb2.RecordCommandRequest] = field(default_factory=dict)
    jobs: dict[str, StoredJob] = field(default_factory=dict)
    deliveries: dict[str, slack_pb2.Delivery] = field(default_factory=dict)
    judgements: list[slack_pb2.RecordFeedbackRequest] = field(default_factory=list)
    corrections: list[ingest_pb2.CorrectMessageRequest] = field(default_factory=list)
    rotations: list[slack_pb2.SaveRotatedTokenRequest] = field(default_factory=list)
    states: set[str] = field(default_factory=set)
    installs: list[slack_pb2.CompleteInstallRequest] = field(default_factory=list)
    backfills: list[str] = field(default_factory=list)
    settings: slack_pb2.Settings = field(
        default_factory=lambda: slack_pb2.Settings(retention_days=90)
    )
    is_away: bool = False
    is_unlisted: bool = False
    # Workers that wait for a job.
    waiting: int = 0
    asked: asyncio.Event = field(default_factory=asyncio.Event)
    watchers: list[asyncio.Queue[ingest_pb2.WatchMembershipResponse]] = field(default_factory=list)
    begun: asyncio.Event = field(default_factory=asyncio.Event)
    hangs_at: str = ""
    coverage: Callable[[Any, Any], Awaitable[ingest_pb2.GetCoverageResponse]] | None = None

    async def ListWorkspaces(self, request: Any, context: Any) -> ingest_pb2.ListWorkspacesResponse:  # noqa: N802
        """By id, as Slack's."""
        if self.is_unlisted:
            raise CallError(
                grpc.StatusCode.UNAVAILABLE,
                error_pb2.ERROR_REASON_DATABASE_UNAVAILABLE,
                "The database is away.",
            )
        teams = {workspace: team for team, workspace in self.teams.items()}
        return ingest_pb2.ListWorkspacesResponse(
            workspaces=[
                ingest_pb2.Workspace(
                    workspace_id=name, source=corpus_pb2.SOURCE_SLACK, team_id=teams.get(name, "")
                )
                for name in sorted(self.workspaces)
            ]
        )

    async def GetCoverage(self, request: Any, context: Any) -> ingest_pb2.GetCoverageResponse:  # noqa: N802
        """As scripted."""
        if self.coverage:
            return await self.coverage(request, context)
        return await super().GetCoverage(request, context)

    async def RecordEvent(self, request: Any, context: Any) -> slack_pb2.RecordEventResponse:  # noqa: N802
        """By event id."""
        outcome = self._outcome(request.team_id, request.event_id, self.events)
        self.events.setdefault(request.event_id, request)
        return slack_pb2.RecordEventResponse(recorded=outcome)

    async def RecordCommand(self, request: Any, context: Any) -> slack_pb2.RecordCommandResponse:  # noqa: N802
        """By dedup key; a new one becomes a job."""
        outcome = self._outcome(request.team_id, request.dedup_key, self.commands)
        if outcome == slack_pb2.RECORDED_NEW:
            self.commands[request.dedup_key] = request
            payload = MessageToJson(request.command, preserving_proto_field_name=True).encode()
            job = StoredJob(f"j{len(self.jobs) + 1}", self.teams[request.team_id], payload)
            self.jobs[job.job_id] = job
            self.asked.set()
        return slack_pb2.RecordCommandResponse(recorded=outcome)

    def _outcome(self, team_id: str, key: str, known: Any) -> slack_pb2.Recorded.ValueType:
        if self.is_away:
            raise CallError(
                grpc.StatusCode.UNAVAILABLE,
                error_pb2.ERROR_REASON_DATABASE_UNAVAILABLE,
                "The database is away.",
            )
        if team_id not in self.teams:
            return slack_pb2.RECORDED_IGNORED
        return slack_pb2.RECORDED_DUPLICATE if key in known else slack_pb2.RECORDED_NEW

    async def ClaimJobs(self, request: Any, context: Any) -> jobs_pb2.ClaimJobsResponse:  # noqa: N802
        """Ready jobs, waiting for one when there is none."""
        ready = self._ready()
        if not ready and request.wait_seconds:
            self.asked.clear()
            self.waiting += 1
            try:
                async with asyncio.timeout(request.wait_seconds):
                    await self.asked.wait()
            except TimeoutError:
                return jobs_pb2.ClaimJobsResponse()
            finally:
                self.waiting -= 1
            ready = self._ready()
        return jobs_pb2.ClaimJobsResponse(jobs=[_claimed(job) for job in ready[: request.limit]])

    def _ready(self) -> list[StoredJob]:
        return [job for job in self.jobs.values() if job.state == JOB_STATES.JOB_STATE_READY]

    async def Heartbeat(self, request: Any, context: Any) -> jobs_pb2.HeartbeatResponse:  # noqa: N802
        """Held under the current number."""
        return jobs_pb2.HeartbeatResponse(held=self._held(request) is not None)

    async def CompleteJob(self, request: Any, context: Any) -> jobs_pb2.CompleteJobResponse:  # noqa: N802
        """Done; what was asked is forgotten."""
        job = self._held(request)
        if job:
            job.state, job.payload = JOB_STATES.JOB_STATE_DONE, b"{}"
        return jobs_pb2.CompleteJobResponse(held=job is not None)

    async def FailJob(self, request: Any, context: Any) -> jobs_pb2.FailJobResponse:  # noqa: N802
        """Ready again at once, or dead."""
        job = self._held(request)
        if job is None:
            return jobs_pb2.FailJobResponse(held=False)
        job.last_error = request.error
        job.failures.append(request.kind)
        job.attempts += request.kind == jobs_pb2.FAILURE_KIND_JOB
        dead = request.kind == jobs_pb2.FAILURE_KIND_PERMANENT or job.attempts >= 8
        job.state = JOB_STATES.JOB_STATE_DEAD if dead else JOB_STATES.JOB_STATE_READY
        self.asked.set()
        return jobs_pb2.FailJobResponse(held=True, is_dead=dead)

    async def GetJob(self, request: Any, context: Any) -> jobs_pb2.GetJobResponse:  # noqa: N802
        """One job."""
        job = self.jobs[request.job_id]
        return jobs_pb2.GetJobResponse(
            job=jobs_pb2.Job(
                workspace_id=job.workspace_id,
                job_id=job.job_id,
                kind="command",
                state=job.state,
                attempts=job.attempts,
                created_at=timestamp(job.created_at),
            )
        )

    def _held(self, request: Any) -> StoredJob | None:
        job = self.jobs[request.job_id]
        running = job.state == JOB_STATES.JOB_STATE_RUNNING
        return job if running and job.claim_number == request.claim_number else None

    def abandon(self, job_id: str) -> None:
        """The job's holder died; anybody may claim it."""
        self.jobs[job_id].state = JOB_STATES.JOB_STATE_READY
        self.asked.set()

    async def LeaseToken(self, request: Any, context: Any) -> slack_pb2.LeaseTokenResponse:  # noqa: N802
        """The token of a workspace; the duty to rotate it goes to one caller."""
        lease = self.tokens.get(request.workspace_id)
        if lease is None:
            raise not_found("No Slack app is installed in this workspace.")
        given = slack_pb2.LeaseTokenResponse()
        given.CopyFrom(lease)
        lease.refresh_token = ""
        return given

    async def SaveRotatedToken(  # noqa: N802
        self, request: Any, context: Any
    ) -> slack_pb2.SaveRotatedTokenResponse:
        """The new tokens."""
        self.rotations.append(request)
        self.tokens[request.workspace_id].bot_token = request.bot_token
        return slack_pb2.SaveRotatedTokenResponse()

    async def BeginInstall(self, request: Any, context: Any) -> slack_pb2.BeginInstallResponse:  # noqa: N802
        """A state that nobody had before."""
        state = f"state-{len(self.states) + len(self.installs)}"
        self.states.add(state)
        return slack_pb2.BeginInstallResponse(state=state)

    async def CompleteInstall(  # noqa: N802
        self, request: Any, context: Any
    ) -> slack_pb2.CompleteInstallResponse:
        """Once a state."""
        if request.state not in self.states:
            raise CallError(
                grpc.StatusCode.FAILED_PRECONDITION,
                error_pb2.ERROR_REASON_INVALID_REQUEST,
                "This state is unknown or was used before.",
            )
        self.states.remove(request.state)
        self.installs.append(request)
        return slack_pb2.CompleteInstallResponse(workspace_id=request.team_id)

    async def StartBackfill(self, request: Any, context: Any) -> ingest_pb2.StartBackfillResponse:  # noqa: N802
        """Remembered."""
        self.backfills.append(request.workspace_id)
        return ingest_pb2.StartBackfillResponse(channels=1)

    async def BeginDelivery(self, request: Any, context: Any) -> slack_pb2.BeginDeliveryResponse:  # noqa: N802
        """One delivery a job and purpose."""
        wanted = request.delivery
        job = self.jobs[wanted.job_id]
        if job.claim_number != request.claim_number:
            raise CallError(
                grpc.StatusCode.ABORTED,
                error_pb2.ERROR_REASON_CLAIM_LOST,
                "Somebody else holds the job.",
            )
        key = f"{wanted.job_id}-{wanted.purpose}"
        known = self.deliveries.get(key)
        if known and known.state == STATES.DELIVERY_STATE_FAILED:
            known.state = STATES.DELIVERY_STATE_BEGUN
            return slack_pb2.BeginDeliveryResponse(delivery=known, is_new=True)
        if known:
            return slack_pb2.BeginDeliveryResponse(delivery=known, is_new=False)
        stored = slack_pb2.Delivery()
        stored.CopyFrom(wanted)
        stored.delivery_id, stored.state = key, STATES.DELIVERY_STATE_BEGUN
        self.deliveries[key] = stored
        await self._hang("begin")
        return slack_pb2.BeginDeliveryResponse(delivery=stored, is_new=True)

    async def FinishDelivery(self, request: Any, context: Any) -> slack_pb2.FinishDeliveryResponse:  # noqa: N802
        """How it ended."""
        await self._hang("finish")
        stored = self.deliveries[request.delivery_id]
        if stored.state == STATES.DELIVERY_STATE_BEGUN:
            stored.state, stored.reason = request.state, request.reason
            stored.message_ts = request.message_ts
        return slack_pb2.FinishDeliveryResponse(delivery=stored)

    async def _hang(self, step: str) -> None:
        """Never answer at the step that a test wants a worker to die at."""
        if self.hangs_at == step:
            self.begun.set()
            await asyncio.Event().wait()

    async def GetDelivery(self, request: Any, context: Any) -> slack_pb2.GetDeliveryResponse:  # noqa: N802
        """One delivery."""
        found = self.deliveries.get(request.delivery_id)
        if found is None:
            raise not_found("No such delivery.")
        return slack_pb2.GetDeliveryResponse(delivery=found)

    async def RecordFeedback(self, request: Any, context: Any) -> slack_pb2.RecordFeedbackResponse:  # noqa: N802
        """Remembered."""
        self.judgements.append(request)
        return slack_pb2.RecordFeedbackResponse()

    async def CorrectMessage(self, request: Any, context: Any) -> ingest_pb2.CorrectMessageResponse:  # noqa: N802
        """Remembered."""
        self.corrections.append(request)
        return ingest_pb2.CorrectMessageResponse()

    async def GetSettings(self, request: Any, context: Any) -> slack_pb2.GetSettingsResponse:  # noqa: N802
        """As kept."""
        return slack_pb2.GetSettingsResponse(settings=self.settings)

    async def UpdateSettings(self, request: Any, context: Any) -> slack_pb2.UpdateSettingsResponse:  # noqa: N802
        """What is given is kept; one out of range is refused."""
        if request.settings.history_page_size > 999:
            raise invalid("settings.history_page_size", "must be between 1 and 999")
        self.settings.MergeFrom(request.settings)
        return slack_pb2.UpdateSettingsResponse(settings=self.settings)

    async def WatchMembership(self, request: Any, context: Any) -> Any:  # noqa: N802
        """What a test puts into the watchers' queues."""
        queue: asyncio.Queue[ingest_pb2.WatchMembershipResponse] = asyncio.Queue()
        self.watchers.append(queue)
        try:
            while True:
                yield await queue.get()
        finally:
            self.watchers.remove(queue)

    def delivery_states(self) -> list[str]:
        """How each delivery stands, in lower case."""
        return [
            STATES.Name(one.state).removeprefix("DELIVERY_STATE_").lower()
            for one in self.deliveries.values()
        ]


def _claimed(job: StoredJob) -> jobs_pb2.ClaimedJob:
    job.state = JOB_STATES.JOB_STATE_RUNNING
    job.claim_number += 1
    return jobs_pb2.ClaimedJob(
        workspace_id=job.workspace_id,
        job_id=job.job_id,
        kind="command",
        payload_json=job.payload,
        claim_number=job.claim_number,
        attempts=job.attempts,
        max_attempts=8,
    )


@dataclass
class SlackScript(Script):
    """All four stages with an ingest that Slack can be installed in."""

    slack: ScriptedSlackIngest = field(
        # Only what the gateway calls is scripted.
        default_factory=lambda: ScriptedSlackIngest({})  # type: ignore[abstract]
    )

    def __post_init__(self) -> None:
        self.ingest = self.slack

    def _register_ingest(self, server: grpc.aio.Server) -> None:
        super()._register_ingest(server)
        jobs_pb2_grpc.add_JobServiceServicer_to_server(self.slack, server)
        slack_pb2_grpc.add_InstallationServiceServicer_to_server(self.slack, server)
        slack_pb2_grpc.add_DeliveryServiceServicer_to_server(self.slack, server)
        slack_pb2_grpc.add_FeedbackServiceServicer_to_server(self.slack, server)
        slack_pb2_grpc.add_SettingsServiceServicer_to_server(self.slack, server)
