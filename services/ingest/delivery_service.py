"""The RPCs about deliveries and feedback: from proto, call the use case, to proto."""

from __future__ import annotations

from typing import Any

import grpc

from recall.ingest.v1 import slack_pb2, slack_pb2_grpc
from services.ingest import delivery_wire as wire
from services.ingest.begin_delivery import begin_delivery
from services.ingest.finish_delivery import finish_delivery
from services.ingest.get_delivery import get_delivery
from services.ingest.record_feedback import record_feedback
from services.ingest.resources import Resources
from services.runtime import call as calls
from services.runtime.callers import require_workspace

Context = grpc.aio.ServicerContext[Any, Any]

NAMES = ("DeliveryService", "FeedbackService")


class DeliveryService(slack_pb2_grpc.DeliveryServiceServicer):
    """Records what was posted, before and after."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources

    async def BeginDelivery(  # noqa: N802
        self, request: slack_pb2.BeginDeliveryRequest, context: Context
    ) -> slack_pb2.BeginDeliveryResponse:
        """See the proto."""
        require_workspace(calls.caller(), request.delivery.workspace_id)
        delivery, is_new = await begin_delivery(self._resources, wire.intention(request))
        return slack_pb2.BeginDeliveryResponse(delivery=wire.delivery(delivery), is_new=is_new)

    async def FinishDelivery(  # noqa: N802
        self, request: slack_pb2.FinishDeliveryRequest, context: Context
    ) -> slack_pb2.FinishDeliveryResponse:
        """See the proto."""
        require_workspace(calls.caller(), request.workspace_id)
        end = wire.end(request)
        delivery = await finish_delivery(
            self._resources, request.workspace_id, request.delivery_id, end
        )
        return slack_pb2.FinishDeliveryResponse(delivery=wire.delivery(delivery))

    async def GetDelivery(  # noqa: N802
        self, request: slack_pb2.GetDeliveryRequest, context: Context
    ) -> slack_pb2.GetDeliveryResponse:
        """See the proto."""
        require_workspace(calls.caller(), request.workspace_id)
        delivery = await get_delivery(self._resources, request.workspace_id, request.delivery_id)
        return slack_pb2.GetDeliveryResponse(delivery=wire.delivery(delivery))


class FeedbackService(slack_pb2_grpc.FeedbackServiceServicer):
    """Keeps "Helpful" and "Not helpful"."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources

    async def RecordFeedback(  # noqa: N802
        self, request: slack_pb2.RecordFeedbackRequest, context: Context
    ) -> slack_pb2.RecordFeedbackResponse:
        """See the proto."""
        require_workspace(calls.caller(), request.workspace_id)
        await record_feedback(self._resources, request.workspace_id, wire.judgement(request))
        return slack_pb2.RecordFeedbackResponse()


def register(server: grpc.aio.Server, resources: Resources) -> None:
    """Serve deliveries and feedback."""
    slack_pb2_grpc.add_DeliveryServiceServicer_to_server(DeliveryService(resources), server)
    slack_pb2_grpc.add_FeedbackServiceServicer_to_server(FeedbackService(resources), server)
