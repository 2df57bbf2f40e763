"""The RPCs of calibration, as a part of GenerationService."""

from __future__ import annotations

from typing import Any

import grpc

from recall.ingest.v1 import generations_pb2, generations_pb2_grpc
from services.ingest import calibration_wire as wire
from services.ingest.calibrations import list_stored, read_feedback_labels, read_labels
from services.ingest.due_replays import list_due_replays
from services.ingest.record_calibration import record_calibration
from services.ingest.resources import Resources
from services.ingest.workspaces import read_workspace
from services.runtime import call as calls
from services.runtime import db
from services.runtime.callers import require_whole_workspace, require_workspace

Context = grpc.aio.ServicerContext[Any, Any]


class CalibrationMethods(generations_pb2_grpc.GenerationServiceServicer):
    """Fits, replays and lists calibrations."""

    _resources: Resources

    async def RecordCalibration(  # noqa: N802
        self, request: generations_pb2.RecordCalibrationRequest, context: Context
    ) -> generations_pb2.RecordCalibrationResponse:
        """See the proto."""
        require_whole_workspace(calls.caller(), request.workspace_id)
        asked = wire.asked(request, calls.caller().name)
        listed = await record_calibration(self._resources, asked)
        return generations_pb2.RecordCalibrationResponse(calibration=wire.calibration(listed))

    async def ListCalibrations(  # noqa: N802
        self, request: generations_pb2.ListCalibrationsRequest, context: Context
    ) -> generations_pb2.ListCalibrationsResponse:
        """See the proto."""
        require_workspace(calls.caller(), request.workspace_id)
        async with db.reading(self._resources.pool, request.workspace_id) as connection:
            await read_workspace(connection, request.workspace_id)
            found = await list_stored(connection, request.workspace_id, request.generation_id)
        return generations_pb2.ListCalibrationsResponse(
            calibrations=[wire.calibration(each) for each in found]
        )

    async def ListDueReplays(  # noqa: N802
        self, request: generations_pb2.ListDueReplaysRequest, context: Context
    ) -> generations_pb2.ListDueReplaysResponse:
        """See the proto."""
        due = await list_due_replays(self._resources, calls.caller())
        return generations_pb2.ListDueReplaysResponse(replays=[wire.due_replay(d) for d in due])

    async def GetLabels(  # noqa: N802
        self, request: generations_pb2.GetLabelsRequest, context: Context
    ) -> generations_pb2.GetLabelsResponse:
        """See the proto."""
        require_whole_workspace(calls.caller(), request.workspace_id)
        async with db.reading(self._resources.pool, request.workspace_id) as connection:
            await read_workspace(connection, request.workspace_id)
            if request.calibration_id:
                labels = await read_labels(connection, request.workspace_id, request.calibration_id)
            else:
                labels = await read_feedback_labels(connection, request.workspace_id)
        return generations_pb2.GetLabelsResponse(labels=[wire.label_to_proto(x) for x in labels])
