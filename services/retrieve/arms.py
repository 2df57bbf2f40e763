"""Both arms over one pinned generation, in the transaction they are given.

An arm lists at most 30 chunks by its own order; equal scores are ordered by the newer last
message of the chunk, then by chunk id. Which messages of a chunk pass the filters is decided per
message, before anything is fused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from psycopg.rows import TupleRow

from services.corpus import Source
from services.embedding.identity import Vector
from services.retrieve.coverage import term_coverage
from services.retrieve.fusion import Arm, Candidate
from services.retrieve.resolve_pin import Generation
from services.retrieve.scope import Scope
from services.runtime import db, sql

CANDIDATES = 30

ARMS = sql.load("services.retrieve", "arms.sql")
SIGNALS = sql.load("services.retrieve", "signals.sql")


@dataclass(frozen=True)
class Query:
    """A question as the arms read it. ``words`` are what ``term_coverage`` weighs."""

    vector: Vector
    lexical_query: str
    words: tuple[str, ...]


@dataclass(frozen=True)
class Rankings:
    """Both lists, and when each of their messages was posted."""

    lists: dict[Arm, list[Candidate]]
    posted_at: dict[str, datetime]
    # Whether some readable chunk has no vector yet.
    dense_incomplete: bool


@dataclass(frozen=True)
class Signals:
    """What is known of a message beside its ranks, by message id."""

    cosines: dict[str, float]
    coverages: dict[str, float | None]


async def run_arms(
    connection: db.Connection, generation: Generation, scope: Scope, query: Query
) -> Rankings:
    """Both arms' lists. An empty lexical query matches nothing."""
    parameters = parameters_of(generation, scope, query)
    dense = await _rows(connection, ARMS.for_width("dense_arm", generation.width), parameters)
    lexical: list[TupleRow] = []
    if query.lexical_query:
        lexical = await _rows(connection, ARMS["lexical_arm"], parameters)
    parameters["chunk_ids"] = list({chunk_id for chunk_id, _ in (*dense, *lexical)})
    is_document = scope.context.source is Source.DOCUMENT
    statement = ARMS["contained_pieces" if is_document else "contained_messages"]
    contained = await _rows(connection, statement, parameters)
    missing = ARMS.for_width("vectors_missing", generation.width)
    [[dense_incomplete]] = await _rows(connection, missing, parameters)
    return Rankings(
        lists={Arm.DENSE: _list(dense, contained), Arm.LEXICAL: _list(lexical, contained)},
        posted_at={message_id: posted_at for _, _, message_id, posted_at in contained},
        dense_incomplete=dense_incomplete,
    )


async def read_signals(
    connection: db.Connection,
    generation: Generation,
    scope: Scope,
    query: Query,
    message_ids: list[str],
) -> Signals:
    """Cosine and term coverage of the given messages."""
    parameters = parameters_of(generation, scope, query) | {
        "message_ids": message_ids,
        # Rarity is over all that the asker may read, whatever the filters.
        "channel_ids": list(scope.context.channel_ids),
    }
    own_cosines = SIGNALS.for_width("own_cosines", generation.width)
    cosines = await _rows(connection, own_cosines, parameters)
    words = await hits_with_words(connection, parameters, query.words)
    chunks_with, chunk_count = await count_readable(connection, parameters, query.words)
    return Signals(
        cosines=dict(cosines),
        coverages={m: term_coverage(found, chunks_with, chunk_count) for m, found in words.items()},
    )


async def hits_with_words(
    connection: db.Connection, parameters: Mapping[str, Any], words: Sequence[str]
) -> dict[str, set[str]]:
    """Which of the words, each a query, stand in each of ``message_ids`` itself."""
    found: dict[str, set[str]] = {message_id: set() for message_id in parameters["message_ids"]}
    given = {**parameters, "words": list(words)}
    for message_id, word in await _rows(connection, SIGNALS["own_words"], given):
        found[message_id].add(word)
    return found


async def count_readable(
    connection: db.Connection, parameters: Mapping[str, Any], words: Sequence[str]
) -> tuple[dict[str, int], int]:
    """Chunks in ``channel_ids`` with each of the words, each a query; and all of them."""
    given = {**parameters, "words": list(words)}
    counts: dict[str, int] = dict(await _rows(connection, SIGNALS["chunks_with_words"], given))
    [[total]] = await _rows(connection, SIGNALS["readable_chunks"], given)
    return counts, total


def parameters_of(generation: Generation, scope: Scope, query: Query) -> dict[str, Any]:
    """What the arms' statements bind."""
    return scope.parameters() | {
        "generation_id": generation.generation_id,
        "question": "[" + ",".join(map(str, query.vector.tolist())) + "]",
        "lexical_query": query.lexical_query,
        "candidates": CANDIDATES,
    }


async def _rows(
    connection: db.Connection, statement: bytes, parameters: Mapping[str, Any]
) -> list[TupleRow]:
    # Never prepared: a plan that does not know the query's terms and channels picks the wrong
    # index and parses the query once a row.
    cursor = await connection.execute(statement, parameters, prepare=False)
    return await cursor.fetchall()


def _list(rows: list[TupleRow], contained: list[TupleRow]) -> list[Candidate]:
    kinds: dict[str, str] = {}
    messages: dict[str, list[str]] = {}
    for chunk_id, kind, message_id, _ in contained:
        kinds[chunk_id] = kind
        messages.setdefault(chunk_id, []).append(message_id)
    return [
        Candidate(chunk_id, kinds.get(chunk_id, ""), score, tuple(messages.get(chunk_id, ())))
        for chunk_id, score in rows
    ]
