"""GetPurge: what a purge deleted so far. It outlives its workspace."""

from __future__ import annotations

from services.ingest.purges import PurgeReport, read_report
from services.ingest.resources import Resources
from services.runtime import db


async def get_purge(resources: Resources, workspace_id: str, purge_id: str) -> PurgeReport:
    """A purge's report. Raises CallError NOT_FOUND."""
    async with db.reading(resources.pool, workspace_id) as connection:
        return await read_report(connection, workspace_id, purge_id)
