"""Reads what the signals of a question are made of, in the search's own transaction."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from services.retrieve.arms import (
    Query,
    Rankings,
    Signals,
    count_readable,
    hits_with_words,
    parameters_of,
)
from services.retrieve.fusion import Arm, Candidate
from services.retrieve.question_words import question_words, stem_query
from services.retrieve.resolve_pin import Generation
from services.retrieve.scope import Scope
from services.retrieve.signal_values import Measured, Reading, measure, word_weights
from services.retrieve.stored_messages import StoredMessage
from services.runtime import db, sql

STATEMENTS = sql.load("services.retrieve", "question_signals.sql")


@dataclass(frozen=True)
class Searched:
    """A search whose arms have been read: what was asked, where, and what came of it."""

    generation: Generation
    scope: Scope
    question: str
    query: Query
    rankings: Rankings
    known: Signals
    stored: Sequence[StoredMessage]
    extras: Sequence[StoredMessage] = ()


async def read_question_signals(connection: db.Connection, searched: Searched) -> Measured:
    """Every signal of the question and of its hits: in the order of ``stored``, then ``extras``."""
    asked = question_words(searched.question)
    scope, rankings = searched.scope, searched.rankings
    shown = [*searched.stored, *searched.extras]
    # Rarity and coverage are over all that the asker may read, whatever the filters.
    parameters = parameters_of(searched.generation, scope, searched.query) | {
        "channel_ids": list(scope.context.channel_ids),
        "message_ids": [one.message.message_id for one in shown],
    }
    queries = await _stem_queries(connection, asked.words)
    with_query, chunk_count = await count_readable(connection, parameters, list(queries.values()))
    chunks_with = {word: with_query[query] for word, query in queries.items()}
    held = await hits_with_words(connection, parameters, list(queries.values()))
    verbatim = await hits_with_words(connection, parameters, list(asked.identifiers))
    named, name_words = await _named_author(connection, parameters, asked.names)
    own, others = 0.0, 0.0
    if named:
        rest = {w: n for w, n in chunks_with.items() if w not in name_words}
        own, others = await _author_coverage(
            connection, parameters, named, queries, word_weights(rest, chunk_count)
        )
    return measure(
        Reading(
            hits=[one.message.message_id for one in searched.stored],
            extras=[one.message.message_id for one in searched.extras],
            cosines=searched.known.cosines,
            chunks_with=chunks_with,
            chunk_count=chunk_count,
            words_of={hit: _words(queries, found) for hit, found in held.items()},
            identifiers=asked.identifiers,
            identifiers_of=verbatim,
            in_lexical=set(_firsts(rankings.lists[Arm.LEXICAL])),
            firsts=(_firsts(rankings.lists[Arm.DENSE]), _firsts(rankings.lists[Arm.LEXICAL])),
            authors={one.message.message_id: one.message.author_id for one in shown},
            named_author=named,
            named_coverage=own,
            other_coverage=others,
        )
    )


async def _stem_queries(connection: db.Connection, words: Sequence[str]) -> dict[str, str]:
    rows = await db.fetch_all(connection, STATEMENTS["stems"], {"words": list(words)})
    return {word: stem_query(word, stem) for word, stem in rows}


async def _named_author(
    connection: db.Connection, parameters: Mapping[str, object], names: Sequence[str]
) -> tuple[str, frozenset[str]]:
    """The one readable author whom the question names, and the words that name him; empty when
    nobody is named, or several people are."""
    if not names:
        return "", frozenset()
    lowered = [name.lower() for name in names]
    given = {**parameters, "names": lowered, "written_names": list(names)}
    people = await db.fetch_all(connection, STATEMENTS["people_with_name"], given)
    whole = [p for p in people if _is_whole(lowered, p[1]) or _is_whole(lowered, p[2])]
    found = {str(person[0]) for person in whole or people}
    if not found:
        rows = await db.fetch_all(connection, STATEMENTS["authors_with_name"], given)
        found = {str(row[0]) for row in rows}
    return (found.pop(), frozenset(lowered)) if len(found) == 1 else ("", frozenset())


async def _author_coverage(
    connection: db.Connection,
    parameters: Mapping[str, object],
    named: str,
    queries: Mapping[str, str],
    weights: Mapping[str, float],
) -> tuple[float, float]:
    given = {
        **parameters,
        "named": [named],
        "queries": [queries[word] for word in weights],
        "weights": list(weights.values()),
    }
    row = await db.fetch_one(connection, STATEMENTS["author_coverage"], given)
    return (min(1.0, row[0]), min(1.0, row[1])) if row else (0.0, 0.0)


def _is_whole(names: Sequence[str], name: str) -> bool:
    parts = name.lower().split()
    return len(parts) > 1 and all(part in names for part in parts)


def _words(queries: Mapping[str, str], found: Collection[str]) -> frozenset[str]:
    return frozenset(word for word, query in queries.items() if query in found)


def _firsts(candidates: Sequence[Candidate]) -> list[str]:
    """Messages of a list, best first, each once."""
    return list(dict.fromkeys(m for candidate in candidates for m in candidate.message_ids))
