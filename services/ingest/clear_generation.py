"""Deletes the rows of a generation that ended, some thousand a transaction."""

from __future__ import annotations

from services.ingest.resources import Resources
from services.ingest.workspaces import changing
from services.runtime import db, sql

ROWS_AT_ONCE = 2_000

_STATEMENTS = sql.load("services.ingest", "generations.sql")
_CHUNKS = sql.load("services.ingest", "chunks.sql")


async def clear_generation(resources: Resources, workspace_id: str, generation_id: str) -> None:
    """Delete the chunks and documents of a retired or failed generation, and what hangs on them.

    Vectors of texts that no other generation holds leave the cache too. Repeats harmlessly.
    """
    some = {
        "workspace_id": workspace_id,
        "generation_id": generation_id,
        "limit": ROWS_AT_ONCE,
    }
    for statement in ("clear_some_chunks", "clear_some_sources"):
        while await _clear_some(resources, workspace_id, statement, some):
            pass


async def _clear_some(
    resources: Resources, workspace_id: str, statement: str, some: dict[str, object]
) -> bool:
    async with changing(resources.pool, workspace_id) as connection:
        rows = await db.fetch_all(connection, _STATEMENTS[statement], some)
        if rows and statement == "clear_some_chunks":
            gone = {"workspace_id": workspace_id, "text_sha256s": sorted({row[0] for row in rows})}
            await connection.execute(_CHUNKS["forget_unused_vectors"], gone)
    return bool(rows)


async def forget_unused_embedders(resources: Resources, workspace_id: str) -> None:
    """Empty the cache of vectors that no generation with rows was begun with."""
    some = {"workspace_id": workspace_id, "limit": ROWS_AT_ONCE}
    forgotten = ROWS_AT_ONCE
    while forgotten == ROWS_AT_ONCE:
        async with changing(resources.pool, workspace_id) as connection:
            cursor = await connection.execute(_STATEMENTS["forget_unused_embedders"], some)
            forgotten = cursor.rowcount
