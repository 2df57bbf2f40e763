"""Carries unchanged documents into a new generation: by the database, not one by one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from services.ingest.generations import Generation
from services.manifest import ManifestObject
from services.runtime import db, sql

# States whose rows are whole.
CARRIED_FROM = ("active", "ready")

_STATEMENTS = sql.load("services.ingest", "documents.sql")


def choose_parent(existing: Sequence[Generation], new: Generation) -> str:
    """The generation to carry from: the serving one, else the newest that is ready, if its pipeline
    is the same; empty when there is none. Another model's vectors are never carried."""
    same = [
        each
        for each in existing
        if each.pipeline_fingerprint == new.pipeline_fingerprint
        and each.generation_id != new.generation_id
    ]
    for state in CARRIED_FROM:
        for each in same:
            if each.state == state:
                return each.generation_id
    return ""


async def carry_forward(
    pool: db.Pool, key: Mapping[str, object], width: int, objects: Mapping[str, ManifestObject]
) -> set[str]:
    """Copy every document that the parent holds with the same hash and path, with its pieces,
    chunks and vectors. Returns their URIs."""
    if not key["parent"] or not objects:
        return set()
    workspace_id = str(key["workspace_id"])
    async with db.writing(pool, workspace_id) as connection:
        given = {
            **key,
            "uris": list(objects),
            "sha256s": [each.sha256 for each in objects.values()],
            "paths": [each.path for each in objects.values()],
        }
        rows = await db.fetch_all(connection, _STATEMENTS["same_sources"], given)
        same = {**key, "uris": [row[0] for row in rows]}
        if not rows:
            return set()
        for name in (
            "carry_sources",
            "carry_pieces",
            "carry_chunks",
            "carry_chunk_messages",
            "carry_terms",
        ):
            await connection.execute(_STATEMENTS[name], same)
        await connection.execute(_STATEMENTS.for_width("carry_vectors", width), same)
    return {row[0] for row in rows}
