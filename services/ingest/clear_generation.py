"""Deletes the rows of a retired generation, some thousand a transaction."""

from __future__ import annotations

from services.ingest.resources import Resources
from services.ingest.workspaces import changing
from services.runtime import db, sql

CHUNKS_AT_ONCE = 2_000

_STATEMENTS = sql.load("services.ingest", "generations.sql")


async def clear_generation(resources: Resources, workspace_id: str, generation_id: str) -> None:
    """Delete the chunks of a generation and what hangs on them. Repeats harmlessly."""
    key = {"workspace_id": workspace_id, "generation_id": generation_id}
    while True:
        async with changing(resources.pool, workspace_id) as connection:
            cleared = await db.fetch_all(
                connection, _STATEMENTS["clear_some_chunks"], {**key, "limit": CHUNKS_AT_ONCE}
            )
        if not cleared:
            return
