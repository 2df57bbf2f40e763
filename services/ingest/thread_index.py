"""Keeps the chunks of threads true to their messages, in every generation that has rows."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from services.corpus import Message, Source
from services.ingest.chunk_rows import (
    ChunkRow,
    ChunkState,
    Difference,
    difference,
    thread_rows,
)
from services.ingest.chunk_store import cached_vectors, insert_chunks
from services.ingest.chunkers import CHUNKERS, Chunkers, chunker_of
from services.ingest.chunking import Encoder
from services.ingest.generations import Generation
from services.ingest.queue import enqueue_embedding
from services.ingest.threads import group_by_thread
from services.runtime import db, sql

# Threads read at once: bounds memory when a batch of replies touches many long threads.
THREADS_AT_ONCE = 100

_CHUNKS = sql.load("services.ingest", "chunks.sql")
_MESSAGES = sql.load("services.ingest", "messages.sql")


@dataclass(frozen=True)
class Scope:
    """One transaction's work on one workspace. ``generations`` are those to keep true."""

    connection: db.Connection
    workspace_id: str
    source: Source
    generations: Sequence[Generation]
    encoder: Encoder
    chunkers: Chunkers = field(default_factory=lambda: CHUNKERS)


@dataclass
class Written:
    """What a transaction did: chunks inserted, texts that went, generations that lack vectors."""

    chunks: int = 0
    texts_gone: set[str] = field(default_factory=set)
    waiting: set[str] = field(default_factory=set)


async def drop_chunks_of(scope: Scope, message_ids: Collection[str], written: Written) -> set[str]:
    """Delete every chunk that shows one of the messages, in any generation.

    Returns the root ids of their threads, which are to be indexed again.
    """
    if not message_ids:
        return set()
    rows = await db.fetch_all(
        scope.connection,
        _CHUNKS["delete_chunks_of_messages"],
        {"workspace_id": scope.workspace_id, "message_ids": list(message_ids)},
    )
    written.texts_gone |= {row[1] for row in rows}
    return {row[0] for row in rows}


async def index_threads(scope: Scope, root_ids: Collection[str], written: Written) -> None:
    """Write what differs between the threads' chunks and their messages. Equal chunks stay."""
    for part in _parts(sorted(root_ids)):
        threads = group_by_thread(await _read_messages(scope, part))
        rows = await asyncio.to_thread(_rows_by_chunker, scope, threads)
        stored = await _read_chunks(scope, part)
        for generation in scope.generations:
            found = stored.get(generation.generation_id, {})
            changed = difference(rows[generation.chunker_version], found)
            written.texts_gone |= {found[chunk_id].text_sha256 for chunk_id in changed.gone}
            await _write(scope, generation, changed, written)


async def settle(scope: Scope, written: Written) -> None:
    """End a transaction: forget vectors of texts that no chunk has, ask for missing vectors."""
    if written.texts_gone:
        await scope.connection.execute(
            _CHUNKS["forget_unused_vectors"],
            {"workspace_id": scope.workspace_id, "text_sha256s": sorted(written.texts_gone)},
        )
    for generation_id in sorted(written.waiting):
        await enqueue_embedding(scope.connection, scope.workspace_id, generation_id)


def _rows_by_chunker(
    scope: Scope, threads: Mapping[str, Sequence[Message]]
) -> dict[str, list[ChunkRow]]:
    """What the chunker of each generation makes of the threads, by its version."""
    return {
        version: thread_rows(
            threads, scope.source, scope.encoder, chunker_of(scope.chunkers, version)
        )
        for version in {generation.chunker_version for generation in scope.generations}
    }


def _parts(root_ids: Sequence[str]) -> Iterator[list[str]]:
    for start in range(0, len(root_ids), THREADS_AT_ONCE):
        yield list(root_ids[start : start + THREADS_AT_ONCE])


async def _read_messages(scope: Scope, root_ids: Sequence[str]) -> list[Message]:
    rows = await db.fetch_all(
        scope.connection,
        _MESSAGES["read_threads"],
        {"workspace_id": scope.workspace_id, "thread_root_ids": root_ids},
    )
    return [Message(row[0], scope.workspace_id, *row[1:]) for row in rows]


async def _read_chunks(scope: Scope, root_ids: Sequence[str]) -> dict[str, dict[str, ChunkState]]:
    """Stored chunks of threads by generation and chunk id."""
    rows = await db.fetch_all(
        scope.connection,
        _CHUNKS["read_chunks"],
        {"workspace_id": scope.workspace_id, "thread_root_ids": root_ids},
    )
    stored: dict[str, dict[str, ChunkState]] = {}
    for generation_id, chunk_id, root_id, sha256, channel_id, authors, first, last in rows:
        author_ids = None if authors is None else tuple(authors)
        state = ChunkState(root_id, sha256, channel_id, author_ids, first, last)
        stored.setdefault(generation_id, {})[chunk_id] = state
    return stored


async def _write(
    scope: Scope, generation: Generation, changed: Difference, written: Written
) -> None:
    if changed.gone:
        await scope.connection.execute(
            _CHUNKS["delete_chunks"], {**generation.key, "chunk_ids": changed.gone}
        )
    if changed.new:
        vectors = await cached_vectors(scope.connection, generation, changed.new)
        await insert_chunks(scope.connection, generation, changed.new, vectors)
        written.chunks += len(changed.new)
        if len(vectors) < len({row.text_sha256 for row in changed.new}):
            written.waiting.add(generation.generation_id)
