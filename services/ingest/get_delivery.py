"""GetDelivery: where one delivery stands."""

from __future__ import annotations

from services.ingest.deliveries import Delivery, read
from services.ingest.resources import Resources
from services.runtime import db


async def get_delivery(resources: Resources, workspace_id: str, delivery_id: str) -> Delivery:
    """The delivery. Raises CallError NOT_FOUND."""
    async with db.reading(resources.pool, workspace_id) as connection:
        return await read(connection, workspace_id, delivery_id)
