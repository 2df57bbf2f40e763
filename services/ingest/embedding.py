"""The embedding lane: gives every chunk of a generation its vector.

Vectors come from the content-addressed cache first, so a text is embedded once for each embedder
and workspace. Every batch is one transaction: a killed worker loses at most one batch, and counts
of what is missing are always true. A chunk whose text changed, or went, while its former text was
being embedded gets nothing from it, and neither does the cache.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from pgvector import Vector as SqlVector

from services.embedding.identity import Embedder, Skipped, Vector
from services.embedding.registry import Embedders
from services.ingest.queue import enqueue_embedding
from services.runtime import db, sql

BATCH_CHUNKS = 64
# A few seconds with the local model, half a minute of long threads; then other generations have
# their turn.
SLICE_CHUNKS = 256
# Only rows that a writer holds are left: its transaction is about to end.
HELD_ROWS_PAUSE_SECONDS = 0.2

_STATEMENTS = sql.load("services.ingest", "embedding.sql")


@dataclass(frozen=True)
class Generation:
    """The generation whose vectors are filled, and its embedder."""

    workspace_id: str
    generation_id: str
    fingerprint: str
    width: int

    @property
    def key(self) -> dict[str, object]:
        """Parameters that name it in every statement."""
        return {"workspace_id": self.workspace_id, "generation_id": self.generation_id}


@dataclass(frozen=True)
class MissingChunk:
    """A chunk without a vector, as it stood when it was read."""

    chunk_id: str
    text_sha256: str
    text: str


Found = dict[str, Vector | Skipped]  # by text_sha256


async def fill_vectors(
    pool: db.Pool, embedders: Embedders, workspace_id: str, generation_id: str
) -> int:
    """Fill missing vectors of a generation; returns how many rows were filled or skipped.

    Ends when none is missing, or after ``SLICE_CHUNKS``, having asked for the rest, which then
    queues up behind the jobs of others. A generation that is gone has nothing to fill. Raises
    CallError EMBEDDER_UNAVAILABLE when its embedder is not set up here (FAILED_PRECONDITION) or
    can not be reached (UNAVAILABLE); what was filled until then stays.
    """
    generation = await _read_generation(pool, workspace_id, generation_id)
    if generation is None:
        return 0
    total, after = 0, ""
    while total < SLICE_CHUNKS:
        chunks = await _read_missing(pool, generation, after)
        if not chunks and not after:
            return total
        # At the end once more from the beginning: texts may have changed behind us.
        after = chunks[-1].chunk_id if chunks else ""
        total += await _fill_batch(pool, embedders, generation, chunks)
    async with db.writing(pool, workspace_id) as connection:
        await enqueue_embedding(connection, workspace_id, generation_id)
    return total


async def _fill_batch(
    pool: db.Pool, embedders: Embedders, generation: Generation, chunks: Sequence[MissingChunk]
) -> int:
    if not chunks:
        return 0
    found = await _read_cached(pool, generation, chunks)
    unknown = {c.text_sha256: c.text for c in chunks if c.text_sha256 not in found}
    if unknown:
        found |= await _embed(embedders.by_fingerprint(generation.fingerprint), unknown)
    filled = await _write(pool, generation, chunks, found)
    if not filled:
        await asyncio.sleep(HELD_ROWS_PAUSE_SECONDS)
    return filled


async def _read_generation(
    pool: db.Pool, workspace_id: str, generation_id: str
) -> Generation | None:
    key = {"workspace_id": workspace_id, "generation_id": generation_id}
    async with db.reading(pool, workspace_id) as connection:
        row = await db.fetch_one(connection, _STATEMENTS["read_generation"], key)
    return Generation(workspace_id, generation_id, *row) if row else None


async def _read_missing(pool: db.Pool, generation: Generation, after: str) -> list[MissingChunk]:
    statement = _STATEMENTS.for_width("read_missing", generation.width)
    parameters = {**generation.key, "after_chunk_id": after, "limit": BATCH_CHUNKS}
    async with db.reading(pool, generation.workspace_id) as connection:
        rows = await db.fetch_all(connection, statement, parameters)
    return [MissingChunk(*row) for row in rows]


async def _read_cached(
    pool: db.Pool, generation: Generation, chunks: Sequence[MissingChunk]
) -> Found:
    parameters = {
        "workspace_id": generation.workspace_id,
        "fingerprint": generation.fingerprint,
        "text_sha256s": [chunk.text_sha256 for chunk in chunks],
    }
    async with db.reading(pool, generation.workspace_id) as connection:
        rows = await db.fetch_all(connection, _STATEMENTS["read_cached"], parameters)
    return {text_sha256: np.frombuffer(stored, "<f4") for text_sha256, stored in rows}


async def _embed(embedder: Embedder, texts: dict[str, str]) -> Found:
    results = await embedder.embed_passages(list(texts.values()))
    return dict(zip(texts, results, strict=True))


async def _write(
    pool: db.Pool, generation: Generation, chunks: Sequence[MissingChunk], found: Found
) -> int:
    """Write what still fits its chunk; only such texts go into the cache."""
    statement = _STATEMENTS.for_width("fill", generation.width)
    results = [found[chunk.text_sha256] for chunk in chunks]
    parameters = {
        **generation.key,
        "chunk_ids": [chunk.chunk_id for chunk in chunks],
        "text_sha256s": [chunk.text_sha256 for chunk in chunks],
        "embeddings": [None if isinstance(r, Skipped) else _as_text(r) for r in results],
        "skipped": [r.reason if isinstance(r, Skipped) else None for r in results],
    }
    async with db.writing(pool, generation.workspace_id) as connection:
        rows = await db.fetch_all(connection, statement, parameters)
        await _write_cache(connection, generation, {row[0]: found[row[0]] for row in rows})
    return len(rows)


async def _write_cache(connection: db.Connection, generation: Generation, found: Found) -> None:
    vectors = {key: r for key, r in found.items() if not isinstance(r, Skipped)}
    parameters = {
        "workspace_id": generation.workspace_id,
        "fingerprint": generation.fingerprint,
        "text_sha256s": list(vectors),
        "vectors": [vector.astype("<f4").tobytes() for vector in vectors.values()],
    }
    await connection.execute(_STATEMENTS["write_cache"], parameters)


def _as_text(vector: Vector) -> str:
    text: str = SqlVector(vector).to_text()
    return text
