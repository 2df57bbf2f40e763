"""The RPCs of ingest: from proto, call the use case, to proto."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import grpc

from recall.ingest.v1 import (
    ingest_pb2,
    ingest_pb2_grpc,
    slack_pb2,
)
from services.ingest import (
    delivery_service,
    delivery_wire,
    generation_service,
    job_service,
    ledger_service,
    slack_service,
    slack_wire,
    wire,
)
from services.ingest.correct_message import correct_message
from services.ingest.document_methods import DocumentMethods
from services.ingest.get_coverage import get_coverage
from services.ingest.get_purge import get_purge
from services.ingest.import_messages import import_messages
from services.ingest.list_channels import list_channels
from services.ingest.list_workspaces import list_workspaces
from services.ingest.purge_channel import purge_channel
from services.ingest.purge_workspace import purge_workspace
from services.ingest.record_command import record_command
from services.ingest.record_event import record_event
from services.ingest.resources import Resources
from services.ingest.start_backfill import start_backfill
from services.ingest.upkeep import Upkeep
from services.ingest.watch_membership import watch_membership
from services.runtime import call as calls
from services.runtime import db
from services.runtime.callers import require_whole_workspace, require_workspace
from services.runtime.server import Servicers

Context = grpc.aio.ServicerContext[Any, Any]


class IngestService(DocumentMethods):
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

    async def StartBackfill(  # noqa: N802
        self, request: ingest_pb2.StartBackfillRequest, context: Context
    ) -> ingest_pb2.StartBackfillResponse:
        """See the proto."""
        require_whole_workspace(calls.caller(), request.workspace_id)
        channels = await start_backfill(
            self._resources,
            request.workspace_id,
            request.channel_id,
            only_recent=request.only_recent,
        )
        return ingest_pb2.StartBackfillResponse(channels=channels)

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

    async def PurgeWorkspace(  # noqa: N802
        self, request: ingest_pb2.PurgeWorkspaceRequest, context: Context
    ) -> ingest_pb2.PurgeWorkspaceResponse:
        """See the proto."""
        require_whole_workspace(calls.caller(), request.workspace_id)
        purge_id = await purge_workspace(self._resources, request.workspace_id)
        return ingest_pb2.PurgeWorkspaceResponse(purge_id=purge_id)

    async def PurgeChannel(  # noqa: N802
        self, request: ingest_pb2.PurgeChannelRequest, context: Context
    ) -> ingest_pb2.PurgeChannelResponse:
        """See the proto."""
        require_whole_workspace(calls.caller(), request.workspace_id)
        purge_id = await purge_channel(self._resources, request.workspace_id, request.channel_id)
        return ingest_pb2.PurgeChannelResponse(purge_id=purge_id)

    async def GetPurge(  # noqa: N802
        self, request: ingest_pb2.GetPurgeRequest, context: Context
    ) -> ingest_pb2.GetPurgeResponse:
        """See the proto."""
        require_whole_workspace(calls.caller(), request.workspace_id)
        report = await get_purge(self._resources, request.workspace_id, request.purge_id)
        return slack_wire.purge_report(report)

    async def CorrectMessage(  # noqa: N802
        self, request: ingest_pb2.CorrectMessageRequest, context: Context
    ) -> ingest_pb2.CorrectMessageResponse:
        """See the proto."""
        require_workspace(calls.caller(), request.workspace_id)
        correction = slack_wire.correction(request)
        await correct_message(self._resources, calls.caller(), correction)
        return ingest_pb2.CorrectMessageResponse()


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

    async def WatchMembership(  # noqa: N802
        self, request: ingest_pb2.WatchMembershipRequest, context: Context
    ) -> AsyncIterator[ingest_pb2.WatchMembershipResponse]:
        """See the proto."""
        async for change in watch_membership(self._resources, calls.caller()):
            yield ingest_pb2.WatchMembershipResponse(
                workspace_id=change.workspace_id, person_id=change.person_id
            )


def servicers(resources: Resources, upkeep: Upkeep) -> Servicers:
    """Everything that an ingest process serves; ready while its database answers."""

    def register(server: grpc.aio.Server) -> None:
        ingest_pb2_grpc.add_IngestServiceServicer_to_server(IngestService(resources), server)
        ingest_pb2_grpc.add_DirectoryServiceServicer_to_server(DirectoryService(resources), server)
        generation_service.register(server, resources, upkeep)
        job_service.register(server, resources)
        delivery_service.register(server, resources)
        slack_service.register(server, resources, upkeep)
        ledger_service.register(server, resources)

    names = (
        "IngestService",
        "DirectoryService",
        *generation_service.NAMES,
        *job_service.NAMES,
        *delivery_service.NAMES,
        *slack_service.NAMES,
        *ledger_service.NAMES,
    )
    return Servicers(
        register=register,
        names=tuple(f"recall.ingest.v1.{name}" for name in names),
        ready=lambda: db.can_read(resources.pool),
        drain=resources.wakeups.close,
    )
