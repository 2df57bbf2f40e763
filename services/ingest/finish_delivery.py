"""FinishDelivery: how a delivery ended."""

from __future__ import annotations

from dataclasses import dataclass

import grpc

from recall.error.v1 import error_pb2
from services.ingest.deliveries import Delivery, finish, read
from services.ingest.markup import storable
from services.ingest.resources import Resources
from services.runtime import db
from services.runtime.errors import CallError


@dataclass(frozen=True)
class End:
    """``state`` is one of deliveries.ENDS; ``message_ts`` names the post, when it has one."""

    state: str
    message_ts: str
    reason: str


async def finish_delivery(
    resources: Resources, workspace_id: str, delivery_id: str, end: End
) -> Delivery:
    """The delivery as it stands; the same end again changes nothing.

    Raises CallError NOT_FOUND, and FAILED_PRECONDITION when it ended otherwise.
    """
    fields = {
        "state": end.state,
        "message_ts": storable(end.message_ts),
        "reason": storable(end.reason),
    }
    async with db.writing(resources.pool, workspace_id) as connection:
        finished = await finish(connection, workspace_id, delivery_id, fields)
        delivery = finished or await read(connection, workspace_id, delivery_id)
    if delivery.state != end.state:
        raise CallError(
            grpc.StatusCode.FAILED_PRECONDITION,
            error_pb2.ERROR_REASON_INVALID_REQUEST,
            f"Delivery {delivery_id!r} ended as {delivery.state} before; it stays so.",
        )
    return delivery
