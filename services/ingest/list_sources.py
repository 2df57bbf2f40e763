"""ListSources: what a collection's serving generation was built of, less what was erased."""

from __future__ import annotations

from dataclasses import dataclass

from services.ingest.resources import Resources
from services.manifest import ManifestObject
from services.runtime import db, sql

_STATEMENTS = sql.load("services.ingest", "list_sources.sql")


@dataclass(frozen=True)
class Sources:
    """The serving generation and its documents by URI; no generation when none serves."""

    generation_id: str
    sources: tuple[ManifestObject, ...]


async def list_sources(resources: Resources, workspace_id: str, collection: str) -> Sources:
    """What serves; a workspace or collection that does not exist has nothing."""
    key = {"workspace_id": workspace_id, "collection": collection}
    async with db.reading(resources.pool, workspace_id) as connection:
        serving = await db.fetch_one(connection, _STATEMENTS["serving_collection"], key)
        rows = await db.fetch_all(connection, _STATEMENTS["serving_sources"], key)
    return Sources(serving[0] if serving else "", tuple(ManifestObject(*row) for row in rows))
