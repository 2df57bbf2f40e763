"""The RPCs of generations: from proto, call the use case, to proto."""

from __future__ import annotations

from typing import Any

import grpc

from recall.ingest.v1 import generations_pb2, generations_pb2_grpc
from services.ingest import generation_wire as wire
from services.ingest.build_generation import build_generation
from services.ingest.calibration_methods import CalibrationMethods
from services.ingest.collect_generations import collect_generations
from services.ingest.list_generations import get_generation, list_generations
from services.ingest.promote_generation import promote_generation
from services.ingest.resources import Resources
from services.ingest.rollback_generation import rollback_generation
from services.ingest.upkeep import Upkeep
from services.ingest.validate_generation import validate_generation
from services.runtime import call as calls
from services.runtime.callers import require_whole_workspace, require_workspace

NAMES = ("GenerationService",)

Context = grpc.aio.ServicerContext[Any, Any]


class GenerationService(CalibrationMethods):
    """Builds, checks, promotes and gives up generations."""

    def __init__(self, resources: Resources, upkeep: Upkeep) -> None:
        self._resources = resources
        self._upkeep = upkeep

    async def BuildGeneration(  # noqa: N802
        self, request: generations_pb2.BuildGenerationRequest, context: Context
    ) -> generations_pb2.BuildGenerationResponse:
        """See the proto."""
        require_whole_workspace(calls.caller(), request.workspace_id)
        workspace, generation = await build_generation(
            self._resources, request.workspace_id, request.embedder, calls.caller().name
        )
        self._upkeep.fill(workspace, generation.generation_id)
        return generations_pb2.BuildGenerationResponse(
            generation=await self._read(request.workspace_id, generation.generation_id)
        )

    async def ValidateGeneration(  # noqa: N802
        self, request: generations_pb2.ValidateGenerationRequest, context: Context
    ) -> generations_pb2.ValidateGenerationResponse:
        """See the proto."""
        require_whole_workspace(calls.caller(), request.workspace_id)
        asked = wire.validation(request, calls.caller().name)
        checked = await validate_generation(self._resources, asked)
        shown = await self._read(request.workspace_id, request.generation_id)
        if shown.state == generations_pb2.GENERATION_STATE_FAILED:
            self._upkeep.clear(request.workspace_id, request.generation_id)
        return wire.checked(checked, shown)

    async def PromoteGeneration(  # noqa: N802
        self, request: generations_pb2.PromoteGenerationRequest, context: Context
    ) -> generations_pb2.PromoteGenerationResponse:
        """See the proto."""
        require_whole_workspace(calls.caller(), request.workspace_id)
        asked = wire.promotion(request, calls.caller().name)
        served = await promote_generation(self._resources, asked)
        for generation_id in served.retired:
            self._upkeep.clear(request.workspace_id, generation_id)
        return generations_pb2.PromoteGenerationResponse(
            generation=await self._read(request.workspace_id, request.generation_id)
        )

    async def RollbackGeneration(  # noqa: N802
        self, request: generations_pb2.RollbackGenerationRequest, context: Context
    ) -> generations_pb2.RollbackGenerationResponse:
        """See the proto."""
        require_whole_workspace(calls.caller(), request.workspace_id)
        asked = wire.rollback(request, calls.caller().name)
        generation_id, served = await rollback_generation(self._resources, asked)
        for retired in served.retired:
            self._upkeep.clear(request.workspace_id, retired)
        return generations_pb2.RollbackGenerationResponse(
            generation=await self._read(request.workspace_id, generation_id)
        )

    async def CollectGenerations(  # noqa: N802
        self, request: generations_pb2.CollectGenerationsRequest, context: Context
    ) -> generations_pb2.CollectGenerationsResponse:
        """See the proto."""
        require_whole_workspace(calls.caller(), request.workspace_id)
        asked = wire.collection(request, calls.caller().name)
        cleared = await collect_generations(self._resources, asked)
        return generations_pb2.CollectGenerationsResponse(generation_ids=cleared)

    async def ListGenerations(  # noqa: N802
        self, request: generations_pb2.ListGenerationsRequest, context: Context
    ) -> generations_pb2.ListGenerationsResponse:
        """See the proto."""
        require_workspace(calls.caller(), request.workspace_id)
        found = await list_generations(self._resources, request.workspace_id, calls.caller())
        return generations_pb2.ListGenerationsResponse(
            generations=[wire.generation(*entry) for entry in found]
        )

    async def _read(self, workspace_id: str, generation_id: str) -> generations_pb2.Generation:
        found = await get_generation(self._resources, workspace_id, generation_id, calls.caller())
        return wire.generation(*found)


def register(server: grpc.aio.Server, resources: Resources, upkeep: Upkeep) -> None:
    """Serve it."""
    generations_pb2_grpc.add_GenerationServiceServicer_to_server(
        GenerationService(resources, upkeep), server
    )
