"""How the stack is: each stage's health, and the workspaces that the caller may read."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from recall.gateway.v1 import gateway_pb2
from recall.ingest.v1 import ingest_pb2
from services.gateway.clients import STAGES, Stages, reach
from services.gateway.context import readable_workspaces
from services.gateway.directory import Directory
from services.runtime.callers import Caller
from services.runtime.errors import CallError

HEALTH_SECONDS = 1.0
COVERAGE_SECONDS = 5.0


async def get_status(
    stages: Stages, directory: Directory, caller: Caller
) -> gateway_pb2.GetStatusResponse:
    """Never fails: a stage that is away is what the reply tells."""
    healths = await asyncio.gather(*(stage_status(stages, stage) for stage in STAGES))
    reply = gateway_pb2.GetStatusResponse(stages=healths)
    try:
        reply.workspaces.extend(await workspace_statuses(stages, directory, caller))
    except CallError as error:
        ingest = reply.stages[STAGES.index("ingest")]
        ingest.detail = ingest.detail or error.message
    return reply


async def stage_status(stages: Stages, stage: str) -> gateway_pb2.StageStatus:
    """One stage's health, asked with a short time limit."""
    try:
        serving = await stages.is_serving(stage, HEALTH_SECONDS)
    except CallError as error:
        detail = f"No answer on {stages.peer(stage).target} ({error.code.name})."
        return gateway_pb2.StageStatus(stage=stage, serving=False, detail=detail)
    detail = "" if serving else f"The {stage} stage runs but is not ready."
    return gateway_pb2.StageStatus(stage=stage, serving=serving, detail=detail)


async def workspace_statuses(
    stages: Stages, directory: Directory, caller: Caller
) -> list[gateway_pb2.WorkspaceStatus]:
    """Each readable workspace with what is stored of it. Raises CallError when ingest is away."""
    readable = readable_workspaces(await directory.workspaces(), caller)
    statuses = []
    for workspace in readable:
        listed = await directory.channels(workspace.workspace_id)
        ids = [c.channel_id for c in listed if caller.may_read_channel(c.channel_id)]
        statuses.append(await _workspace_status(stages, workspace, ids))
    return statuses


async def _workspace_status(
    stages: Stages, workspace: ingest_pb2.Workspace, channel_ids: Sequence[str]
) -> gateway_pb2.WorkspaceStatus:
    """What is stored of the channels; nothing but the workspace's own facts without any."""
    coverage = ingest_pb2.GetCoverageResponse()
    if channel_ids:
        request = ingest_pb2.GetCoverageRequest(
            workspace_id=workspace.workspace_id, channel_ids=channel_ids
        )
        coverage = await reach("ingest", stages.ingester.GetCoverage, request, COVERAGE_SECONDS)
    channels = coverage.channels
    status = gateway_pb2.WorkspaceStatus(
        workspace_id=workspace.workspace_id,
        source=workspace.source,
        messages=sum(channel.messages for channel in channels),
        channels=len(channels),
        generation_id=coverage.generation_id,
        embedder=coverage.embedder,
        chunks=coverage.chunks,
        chunks_without_vector=coverage.chunks_without_vector,
    )
    _set_newest(status, channels)
    return status


def _set_newest(
    status: gateway_pb2.WorkspaceStatus, channels: Sequence[ingest_pb2.ChannelCoverage]
) -> None:
    stamps = [channel.newest_at for channel in channels if channel.HasField("newest_at")]
    if stamps:
        status.newest_at.CopyFrom(max(stamps, key=lambda stamp: (stamp.seconds, stamp.nanos)))
