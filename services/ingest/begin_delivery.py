"""BeginDelivery: the intention to post, recorded before anything is posted."""

from __future__ import annotations

import grpc

from recall.error.v1 import error_pb2
from services.ingest.deliveries import Delivery, Intention, begin, claim_is_held
from services.ingest.resources import Resources
from services.runtime import db
from services.runtime.errors import CallError, invalid


async def begin_delivery(resources: Resources, intention: Intention) -> tuple[Delivery, bool]:
    """The delivery as it stands, and whether this call began it: then post now, else look first.

    One that could not be posted before is begun anew. Raises CallError CLAIM_LOST for a claim that
    is not current, INVALID_ARGUMENT.
    """
    if not intention.job_id:
        raise invalid("delivery.job_id", "must name the command's job")
    async with db.writing(resources.pool, intention.workspace_id) as connection:
        if not await claim_is_held(connection, intention):
            raise CallError(
                grpc.StatusCode.ABORTED,
                error_pb2.ERROR_REASON_CLAIM_LOST,
                f"Job {intention.job_id!r} is not held under claim {intention.claim_number}. "
                "Post nothing; whoever holds it does.",
            )
        return await begin(connection, intention)
