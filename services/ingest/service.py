"""The RPCs of ingest: from proto, call the use case, to proto."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import grpc

from recall.ingest.v1 import ingest_pb2, ingest_pb2_grpc, slack_pb2
from services.ingest import delivery_service, delivery_wire, job_service, slack_wire, wire
from services.ingest.build_generation import build_generation
from services.ingest.get_coverage import get_coverage
from services.ingest.import_messages import import_messages
from services.ingest.list_channels import list_channels
from services.ingest.list_generations import get_generation, list_generations
from services.ingest.list_workspaces import list_workspaces
from services.ingest.promote_generation import promote_generation
from services.ingest.record_command import record_command
from services.ingest.record_event import record_event
from services.ingest.resources import Resources
from services.ingest.upkeep import Upkeep
from services.runtime import call as calls
from services.runtime import db
from services.runtime.callers import require_workspace
from services.runtime.server import Servicers

Context = grpc.aio.ServicerContext[Any, Any]


class IngestService(ingest_pb2_grpc.IngestServiceServicer):
    """Stores messages and keeps chunks true to them."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources

    async def ImportMessages(  # noqa: N802
        self,
        request_iterator: AsyncIterator[ingest_pb2.ImportMessagesRequest],
        context: Context,
    ) -> AsyncIterator[ingest_pb2.ImportMessagesResponse]:
        """See the proto."""
        parts = wire.parts_of(request_iterator)
        async for event in import_messages(parts, self._resources, calls.caller()):
            yield wire.import_event(event)

    async def GetCoverage(  # noqa: N802
        self, request: ingest_pb2.GetCoverageRequest, context: Context
    ) -> ingest_pb2.GetCoverageResponse:
        """See the proto."""
        caller = calls.caller()
        require_workspace(caller, request.workspace_id)
        wanted = frozenset(request.channel_ids)
        found = await get_coverage(self._resources, request.workspace_id, caller, wanted)
        return wire.coverage(found)

    async def RecordEvent(  # noqa: N802
        self, request: slack_pb2.RecordEventRequest, context: Context
    ) -> slack_pb2.RecordEventResponse:
        """See the proto."""
        delivery = slack_wire.delivery(request)
        outcome = await record_event(self._resources, calls.caller(), delivery)
        return slack_wire.recorded(outcome)

    async def RecordCommand(  # noqa: N802
        self, request: slack_pb2.RecordCommandRequest, context: Context
    ) -> slack_pb2.RecordCommandResponse:
        """See the proto."""
        asked = delivery_wire.asked_command(request)
        outcome = await record_command(self._resources, calls.caller(), asked)
        return slack_pb2.RecordCommandResponse(recorded=slack_wire.RECORDED[outcome])


class DirectoryService(ingest_pb2_grpc.DirectoryServiceServicer):
    """Knows names."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources

    async def ListWorkspaces(  # noqa: N802
        self, request: ingest_pb2.ListWorkspacesRequest, context: Context
    ) -> ingest_pb2.ListWorkspacesResponse:
        """See the proto."""
        found = await list_workspaces(self._resources, calls.caller())
        return ingest_pb2.ListWorkspacesResponse(workspaces=[wire.workspace(w) for w in found])

    async def ListChannels(  # noqa: N802
        self, request: ingest_pb2.ListChannelsRequest, context: Context
    ) -> ingest_pb2.ListChannelsResponse:
        """See the proto."""
        require_workspace(calls.caller(), request.workspace_id)
        found = await list_channels(self._resources, request.workspace_id, calls.caller())
        return ingest_pb2.ListChannelsResponse(channels=[wire.channel(row) for row in found])


class GenerationService(ingest_pb2_grpc.GenerationServiceServicer):
    """Builds and promotes generations."""

    def __init__(self, resources: Resources, upkeep: Upkeep) -> None:
        self._resources = resources
        self._upkeep = upkeep

    async def BuildGeneration(  # noqa: N802
        self, request: ingest_pb2.BuildGenerationRequest, context: Context
    ) -> ingest_pb2.BuildGenerationResponse:
        """See the proto."""
        require_workspace(calls.caller(), request.workspace_id)
        workspace, generation = await build_generation(
            self._resources, request.workspace_id, request.embedder
        )
        self._upkeep.fill(workspace, generation.generation_id)
        return ingest_pb2.BuildGenerationResponse(
            generation=await self._read(request.workspace_id, generation.generation_id)
        )

    async def PromoteGeneration(  # noqa: N802
        self, request: ingest_pb2.PromoteGenerationRequest, context: Context
    ) -> ingest_pb2.PromoteGenerationResponse:
        """See the proto."""
        require_workspace(calls.caller(), request.workspace_id)
        retired = await promote_generation(
            self._resources, request.workspace_id, request.generation_id
        )
        for generation_id in retired:
            self._upkeep.clear(request.workspace_id, generation_id)
        return ingest_pb2.PromoteGenerationResponse(
            generation=await self._read(request.workspace_id, request.generation_id)
        )

    async def ListGenerations(  # noqa: N802
        self, request: ingest_pb2.ListGenerationsRequest, context: Context
    ) -> ingest_pb2.ListGenerationsResponse:
        """See the proto."""
        require_workspace(calls.caller(), request.workspace_id)
        found = await list_generations(self._resources, request.workspace_id, calls.caller())
        return ingest_pb2.ListGenerationsResponse(
            generations=[wire.generation(*entry) for entry in found]
        )

    async def _read(self, workspace_id: str, generation_id: str) -> ingest_pb2.Generation:
        found = await get_generation(self._resources, workspace_id, generation_id, calls.caller())
        return wire.generation(*found)


def servicers(resources: Resources, upkeep: Upkeep) -> Servicers:
    """Everything that an ingest process serves; ready while its database answers."""

    def register(server: grpc.aio.Server) -> None:
        ingest_pb2_grpc.add_IngestServiceServicer_to_server(IngestService(resources), server)
        ingest_pb2_grpc.add_DirectoryServiceServicer_to_server(DirectoryService(resources), server)
        ingest_pb2_grpc.add_GenerationServiceServicer_to_server(
            GenerationService(resources, upkeep), server
        )
        job_service.register(server, resources)
        delivery_service.register(server, resources)

    names = (
        "IngestService",
        "DirectoryService",
        "GenerationService",
        *job_service.NAMES,
        *delivery_service.NAMES,
    )
    return Servicers(
        register=register,
        names=tuple(f"recall.ingest.v1.{name}" for name in names),
        ready=lambda: db.can_read(resources.pool),
        drain=resources.wakeups.close,
    )
