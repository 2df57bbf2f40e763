"""Reads back what a generation holds, and says what is wrong with it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from services.ingest.generations import Generation
from services.manifest import Manifest, ManifestObject, canonical, digest
from services.runtime import db, sql

EXAMPLES = 3
QUESTION_CHARACTERS = 2_000

_STATEMENTS = sql.load("services.ingest", "validation.sql")
_WORD = re.compile(r"[^\W_]+")
# Statement, and what its rows are. The rows are chunk ids or message ids: never text.
_LIVE_CHECKS = (
    ("changed_texts", "chunks have another text than their vector was made for"),
    ("unusable_vectors", "chunks have a vector without width, direction or end"),
)
_SEALED_CHECKS = (
    ("pieces_without_chunk", "pieces of documents have no chunk"),
    ("chunks_without_piece", "chunks belong to no document"),
    ("chunks_without_rows", "chunks are missing in the index of an arm"),
    ("skipped_vectors", "chunks have no vector because the embedder refused them"),
    *_LIVE_CHECKS,
)


@dataclass(frozen=True)
class SmokeSearch:
    """A known chunk, its words as a question, and whether each arm returned it."""

    chunk_id: str
    question: str
    channel_id: str
    posted_from: datetime | None = None
    posted_until: datetime | None = None
    found_dense: bool = False
    found_lexical: bool = False


@dataclass(frozen=True)
class Reading:
    """What was read: sources (messages of chat), chunks, and one sentence a fault."""

    sources: int
    chunks: int
    faults: tuple[str, ...]


async def read_back(connection: db.Connection, generation: Generation) -> Reading:
    """Read every row of a generation in one snapshot."""
    counts = "count_sealed" if generation.is_sealed else "count_live"
    row = await db.fetch_one(connection, _STATEMENTS[counts], generation.key)
    sources, chunks = row or (0, 0)
    faults: list[str] = []
    for statement, meaning in _SEALED_CHECKS if generation.is_sealed else _LIVE_CHECKS:
        wrong = await _ids(connection, generation, statement)
        if wrong:
            faults.append(_sentence(wrong, meaning))
    if generation.is_sealed and not await _is_of_its_manifest(connection, generation):
        faults.append("The sources are those of another manifest.")
    return Reading(sources, chunks, tuple(faults))


async def waiting_vectors(connection: db.Connection, generation: Generation) -> int:
    """Chunks of a generation without a vector that the embedding lane is still to fill."""
    return len(await _ids(connection, generation, "waiting_vectors"))


async def choose_smoke_search(
    connection: db.Connection, generation: Generation
) -> SmokeSearch | None:
    """A chunk that both arms must find by its own words; None when no chunk has any."""
    statement = _STATEMENTS.for_width("smoke_chunk", generation.width)
    row = await db.fetch_one(connection, statement, generation.key)
    if row is None or not words_of(row[1]):
        return None
    return SmokeSearch(row[0], words_of(row[1]), *row[2:])


async def is_searchable(
    connection: db.Connection, generation: Generation, search: SmokeSearch
) -> bool:
    """Whether a chunk still has the words that were searched for, and their vector."""
    statement = _STATEMENTS.for_width("embedded_text", generation.width)
    row = await db.fetch_one(connection, statement, {**generation.key, "chunk_id": search.chunk_id})
    return row is not None and words_of(row[0]) == search.question


def words_of(text: str) -> str:
    """The words of a text's beginning, without anything that a question could read as a filter."""
    return " ".join(_WORD.findall(text[:QUESTION_CHARACTERS]))


def smoke_faults(search: SmokeSearch) -> tuple[str, ...]:
    """What a smoke search says about the arms."""
    arms = (("vector", search.found_dense), ("full-text", search.found_lexical))
    return tuple(
        f"The {arm} arm does not return chunk {search.chunk_id} for its own words."
        for arm, found in arms
        if not found
    )


async def _is_of_its_manifest(connection: db.Connection, generation: Generation) -> bool:
    """Whether the sources, each with its hash, give the digest of the manifest.

    What was erased since it was built can not be counted again; then nothing is compared.
    """
    if generation.corpus_fingerprint != generation.manifest_digest:
        return True
    rows = await db.fetch_all(connection, _STATEMENTS["read_sources"], generation.key)
    objects = tuple(ManifestObject(*row) for row in rows)
    manifest = Manifest(generation.collection, objects)
    return digest(canonical(manifest)) == generation.manifest_digest


async def _ids(connection: db.Connection, generation: Generation, name: str) -> list[str]:
    statement = _STATEMENTS.for_width(name, generation.width)
    parameters = {**generation.key, "width": generation.width}
    return [row[0] for row in await db.fetch_all(connection, statement, parameters)]


def _sentence(ids: Sequence[str], meaning: str) -> str:
    shown = ", ".join(ids[:EXAMPLES])
    more = ", …" if len(ids) > EXAMPLES else ""
    return f"{len(ids)} {meaning}: {shown}{more}."
