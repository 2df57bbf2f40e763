"""Deletes erased documents from every generation that has rows, sealed or not."""

from __future__ import annotations

from dataclasses import dataclass

from services.ingest.forget_facts import forget_facts
from services.ingest.seal import allow_erasure
from services.manifest import erased_fingerprint
from services.runtime import db, sql

_STATEMENTS = sql.load("services.ingest", "documents.sql")
_CHUNKS = sql.load("services.ingest", "chunks.sql")


@dataclass(frozen=True)
class Forgotten:
    """Generations that held something of it, and how many chunks went."""

    generation_ids: tuple[str, ...]
    chunks: int


async def forget_sources(
    connection: db.Connection, workspace_id: str, collection: str
) -> Forgotten:
    """Delete what the collection's tombstones name.

    The corpus of every generation that lost something has another fingerprint from then on, so no
    calibration that was measured on it holds any more.
    """
    key: dict[str, object] = {"workspace_id": workspace_id, "collection": collection}
    rows = await db.fetch_all(connection, _STATEMENTS["erased_uris"], key)
    uris = [row[0] for row in rows]
    if not uris:
        return Forgotten((), 0)
    await allow_erasure(connection)
    given = {**key, "uris": uris}
    gone = await db.fetch_all(connection, _STATEMENTS["delete_chunks_of_sources"], given)
    await connection.execute(_STATEMENTS["delete_edges_to"], given)
    deleted = await db.fetch_all(connection, _STATEMENTS["delete_sources"], given)
    held = {row[0] for row in deleted}
    await forget_facts(connection, workspace_id, collection, uris)
    await connection.execute(
        _CHUNKS["forget_unused_vectors"],
        {"workspace_id": workspace_id, "text_sha256s": sorted({row[0] for row in gone})},
    )
    for generation_id, manifest_digest in await db.fetch_all(
        connection, _STATEMENTS["digests"], key
    ):
        if generation_id in held:
            fingerprint = erased_fingerprint(manifest_digest, uris)
            await connection.execute(
                _STATEMENTS["set_corpus"],
                {**key, "generation_id": generation_id, "corpus_fingerprint": fingerprint},
            )
    return Forgotten(tuple(sorted(held)), len(gone))
