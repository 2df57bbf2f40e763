"""The RPCs about installed apps and settings: from proto, call the use case, to proto."""

from __future__ import annotations

from typing import Any

import grpc

from recall.ingest.v1 import slack_pb2, slack_pb2_grpc
from services.ingest import slack_wire as wire
from services.ingest.begin_install import begin_install
from services.ingest.complete_install import complete_install
from services.ingest.lease_token import lease_token
from services.ingest.remove_installation import remove_installation
from services.ingest.resources import Resources
from services.ingest.save_rotated_token import save_rotated_token
from services.ingest.settings import get_settings, update_settings
from services.ingest.upkeep import Upkeep
from services.runtime import call as calls
from services.runtime.callers import EVERYTHING, require_whole_workspace, require_workspace

Context = grpc.aio.ServicerContext[Any, Any]

NAMES = ("InstallationService", "SettingsService")


class InstallationService(slack_pb2_grpc.InstallationServiceServicer):
    """Keeps installed Slack apps and their tokens, encrypted."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources

    async def BeginInstall(  # noqa: N802
        self, request: slack_pb2.BeginInstallRequest, context: Context
    ) -> slack_pb2.BeginInstallResponse:
        """See the proto. Only for callers of every workspace: it is not known yet which."""
        require_whole_workspace(calls.caller(), EVERYTHING)
        return slack_pb2.BeginInstallResponse(state=await begin_install(self._resources))

    async def CompleteInstall(  # noqa: N802
        self, request: slack_pb2.CompleteInstallRequest, context: Context
    ) -> slack_pb2.CompleteInstallResponse:
        """See the proto."""
        workspace_id = await complete_install(
            self._resources, calls.caller(), request.state, wire.install(request)
        )
        return slack_pb2.CompleteInstallResponse(workspace_id=workspace_id)

    async def LeaseToken(  # noqa: N802
        self, request: slack_pb2.LeaseTokenRequest, context: Context
    ) -> slack_pb2.LeaseTokenResponse:
        """See the proto."""
        require_whole_workspace(calls.caller(), request.workspace_id)
        return wire.lease(await lease_token(self._resources, request.workspace_id))

    async def SaveRotatedToken(  # noqa: N802
        self, request: slack_pb2.SaveRotatedTokenRequest, context: Context
    ) -> slack_pb2.SaveRotatedTokenResponse:
        """See the proto."""
        require_whole_workspace(calls.caller(), request.workspace_id)
        await save_rotated_token(self._resources, request.workspace_id, wire.rotated(request))
        return slack_pb2.SaveRotatedTokenResponse()

    async def RemoveInstallation(  # noqa: N802
        self, request: slack_pb2.RemoveInstallationRequest, context: Context
    ) -> slack_pb2.RemoveInstallationResponse:
        """See the proto."""
        require_whole_workspace(calls.caller(), request.workspace_id)
        purge_id = await remove_installation(self._resources, request.workspace_id)
        return slack_pb2.RemoveInstallationResponse(purge_id=purge_id)


class SettingsService(slack_pb2_grpc.SettingsServiceServicer):
    """Keeps a workspace's settings."""

    def __init__(self, resources: Resources, upkeep: Upkeep) -> None:
        self._resources = resources
        self._upkeep = upkeep

    async def GetSettings(  # noqa: N802
        self, request: slack_pb2.GetSettingsRequest, context: Context
    ) -> slack_pb2.GetSettingsResponse:
        """See the proto."""
        require_workspace(calls.caller(), request.workspace_id)
        found = await get_settings(self._resources, request.workspace_id)
        return slack_pb2.GetSettingsResponse(settings=wire.settings(found))

    async def UpdateSettings(  # noqa: N802
        self, request: slack_pb2.UpdateSettingsRequest, context: Context
    ) -> slack_pb2.UpdateSettingsResponse:
        """See the proto."""
        require_whole_workspace(calls.caller(), request.workspace_id)
        wanted = wire.wanted_settings(request)
        found = await update_settings(self._resources, request.workspace_id, wanted)
        self._upkeep.apply_settings(request.workspace_id)
        return slack_pb2.UpdateSettingsResponse(settings=wire.settings(found))


def register(server: grpc.aio.Server, resources: Resources, upkeep: Upkeep) -> None:
    """Add the services of ``NAMES`` to a server."""
    slack_pb2_grpc.add_InstallationServiceServicer_to_server(InstallationService(resources), server)
    slack_pb2_grpc.add_SettingsServiceServicer_to_server(SettingsService(resources, upkeep), server)
