"""Writes chunks of one generation with all that belongs to them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import numpy as np
from pgvector import Vector as SqlVector

from services.ingest.chunk_rows import ChunkRow
from services.ingest.generations import Generation
from services.runtime import db, sql

_CHUNKS = sql.load("services.ingest", "chunks.sql")


async def cached_vectors(
    connection: db.Connection, generation: Generation, rows: Sequence[ChunkRow]
) -> dict[str, str]:
    """Known vectors of the rows' texts, as SQL takes them, by the text's SHA-256."""
    found = await db.fetch_all(
        connection,
        _CHUNKS["read_cached_vectors"],
        {
            "workspace_id": generation.workspace_id,
            "fingerprint": generation.embedder_fingerprint,
            "text_sha256s": sorted({row.text_sha256 for row in rows}),
        },
    )
    return {sha256: _as_text(stored) for sha256, stored in found}


def _as_text(stored: bytes) -> str:
    text: str = SqlVector(np.frombuffer(stored, "<f4")).to_text()
    return text


async def insert_chunks(
    connection: db.Connection,
    generation: Generation,
    rows: Sequence[ChunkRow],
    vectors: Mapping[str, str],
) -> None:
    """Write chunks with their rows in both index tables; ``vectors`` are those that are known, by
    the SHA-256 of the text."""
    beside = {
        **generation.key,
        "chunk_ids": [row.chunk.chunk_id for row in rows],
        "channel_ids": [row.channel_id for row in rows],
        "author_ids": [json.dumps(row.author_ids) for row in rows],
        "posted_from": [row.posted_from for row in rows],
        "posted_until": [row.posted_until for row in rows],
        "texts": [row.chunk.text for row in rows],
    }
    await connection.execute(_CHUNKS["insert_chunks"], {**beside, **_details(rows)})
    await connection.execute(_CHUNKS["insert_chunk_messages"], {**generation.key, **_members(rows)})
    await connection.execute(_CHUNKS["insert_chunk_terms"], beside)
    await connection.execute(
        _CHUNKS.for_width("insert_vectors", generation.width),
        {**beside, "embeddings": [vectors.get(row.text_sha256) for row in rows]},
    )


def _details(rows: Sequence[ChunkRow]) -> dict[str, object]:
    return {
        "thread_root_ids": [row.thread_root_id for row in rows],
        "kinds": [row.chunk.kind for row in rows],
        "text_sha256s": [row.text_sha256 for row in rows],
        "token_counts": [row.chunk.token_count for row in rows],
    }


def _members(rows: Sequence[ChunkRow]) -> dict[str, object]:
    members = [
        (row.chunk.chunk_id, message_id, position)
        for row in rows
        for position, message_id in enumerate(row.chunk.message_ids)
    ]
    return {
        "chunk_ids": [member[0] for member in members],
        "message_ids": [member[1] for member in members],
        "positions": [member[2] for member in members],
    }
