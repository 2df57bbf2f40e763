"""AdminService: what operators do that needs more than one stage. Translates, nothing else."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from typing import Any

import grpc

from recall.gateway.v1 import admin_pb2
from services.gateway.calibrate_generation import (
    CALIBRATE_SECONDS,
    Event,
    calibrate_generation,
)
from services.gateway.clients import Stages
from services.gateway.deadline import Deadline, deadline_in
from services.gateway.directory import Directory
from services.gateway.fact_methods import FactMethods
from services.gateway.validate_generation import VALIDATE_SECONDS, validate_generation
from services.runtime import call as calls
from services.runtime.callers import require_whole_workspace

ADMIN_SERVICE_NAME = "recall.gateway.v1.AdminService"

Context = grpc.aio.ServicerContext[Any, Any]


class AdminService(FactMethods):
    """For callers that may read a whole workspace."""

    def __init__(self, stages: Stages, directory: Directory) -> None:
        self._stages = stages
        self._directory = directory

    async def ValidateGeneration(  # noqa: N802
        self, request: admin_pb2.ValidateGenerationRequest, context: Context
    ) -> admin_pb2.ValidateGenerationResponse:
        """See the proto."""
        require_whole_workspace(calls.caller(), request.workspace_id)
        result = await validate_generation(
            self._stages,
            request.workspace_id,
            request.generation_id,
            calls.caller().name,
            deadline_of_call(VALIDATE_SECONDS),
        )
        return admin_pb2.ValidateGenerationResponse(result=result)

    async def CalibrateGeneration(  # noqa: N802
        self, request: admin_pb2.CalibrateGenerationRequest, context: Context
    ) -> AsyncIterator[admin_pb2.CalibrateGenerationResponse]:
        """See the proto."""
        require_whole_workspace(calls.caller(), request.workspace_id)
        deadline = deadline_of_call(CALIBRATE_SECONDS)
        async for event in calibrate_generation(request, "", self._stages, deadline):
            yield as_response(event)


def as_response(event: Event) -> admin_pb2.CalibrateGenerationResponse:
    """Progress or the calibration as the stream carries it."""
    if isinstance(event, admin_pb2.CalibrateProgress):
        return admin_pb2.CalibrateGenerationResponse(progress=event)
    return admin_pb2.CalibrateGenerationResponse(calibration=event)


def deadline_of_call(seconds: float) -> Deadline:
    """The caller's deadline, at most ``seconds`` from now."""
    call = calls.current.get()
    return deadline_in(time.monotonic, seconds, call.deadline if call else None)
