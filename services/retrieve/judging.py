"""Reads what the trust gate needs, in the search's own transaction, and lets it judge."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC
from typing import Any

from psycopg.rows import TupleRow

from services.calibration.model import contributions, hit_confidences, question_confidence
from services.corpus import Source
from services.retrieve.abstention import abstention
from services.retrieve.arms import Signals, parameters_of, read_signals
from services.retrieve.published_calibration import Calibration, Published
from services.retrieve.question_signals import Searched, read_question_signals
from services.retrieve.signal_values import Measured
from services.retrieve.stored_messages import StoredMessage, load_messages
from services.retrieve.supersession import Clocks, Edge, Item, Knowledge
from services.retrieve.trust import Hit, Judged, judge, successors_wanted
from services.runtime import db, sql

STATEMENTS = sql.load("services.retrieve", "trust.sql")


@dataclass(frozen=True)
class Judgement:
    """What the gate said: hits in its order; ``stored`` holds them and what replaces them.

    ``confidence`` is the question's, absent without a calibration, as is ``measured`` unless asked
    for.
    """

    judged: tuple[Judged, ...]
    stored: dict[str, StoredMessage]
    known: Signals
    reason: str
    confidence: float | None = None
    measured: Measured | None = None
    # Raw signals of each hit, by its id; empty unless they were measured.
    signals: dict[str, dict[str, float]] = field(default_factory=dict)
    # What each signal of the question adds, in logits.
    weighed: dict[str, float] = field(default_factory=dict)


async def judge_hits(
    connection: db.Connection,
    searched: Searched,
    calibration: Calibration,
    clocks: Clocks,
    with_signals: bool,
) -> Judgement:
    """Judge the hits of a search, with the last valid replacement of each that is replaced."""
    plain = [_hit(one) for one in searched.stored]
    knowledge = await _knowledge(connection, searched, plain, clocks)
    wanted = successors_wanted(plain, knowledge)
    if wanted:
        searched = await _with_extras(connection, searched, wanted)
    published = calibration if isinstance(calibration, Published) else None
    measured = None
    if published or with_signals:
        measured = await read_question_signals(connection, searched)
    shown = [*searched.stored, *searched.extras]
    hits, confidence = [_hit(one) for one in shown], None
    weighed: dict[str, float] = {}
    if published and measured:
        confidence = question_confidence(published.model, measured.question)
        weighed = contributions(published.model, measured.question)
        confidences = hit_confidences(published.model, measured.question, measured.hits)
        hits = [_hit(one, known) for one, known in zip(shown, confidences, strict=True)]
        knowledge = Knowledge(clocks, knowledge.items, knowledge.edges, published.model.threshold)
    judged = judge(hits, knowledge)
    stored = {one.message.message_id: one for one in shown}
    return Judgement(
        judged=tuple(judged),
        stored=stored,
        known=searched.known,
        reason=abstention(judged, knowledge),
        confidence=confidence,
        measured=measured,
        signals=dict(zip(stored, measured.hits, strict=True)) if measured else {},
        weighed=weighed,
    )


async def _knowledge(
    connection: db.Connection, searched: Searched, hits: Sequence[Hit], clocks: Clocks
) -> Knowledge:
    wanted = list(dict.fromkeys(hit.item_id for hit in hits))
    is_document = searched.scope.context.source is Source.DOCUMENT
    rows = await db.fetch_all(
        connection,
        STATEMENTS["supersessions" if is_document else "corrections"],
        _parameters(searched, wanted),
    )
    edges = [Edge(*row) for row in rows]
    # Of chat everything is known of the hits themselves; of documents not what they depend on.
    items = {} if is_document else {one.source_uri: _chat_item(one) for one in searched.stored}
    named = [*wanted, *(e.newer for e in edges), *(e.older for e in edges)]
    missing = [item_id for item_id in dict.fromkeys(named) if item_id not in items]
    if missing:
        statement = STATEMENTS["document_items" if is_document else "message_items"]
        rows = await db.fetch_all(connection, statement, _parameters(searched, missing))
        items |= {row[0]: _item(row) for row in rows}
    return Knowledge(clocks, items, edges)


async def _with_extras(
    connection: db.Connection, searched: Searched, items: Sequence[str]
) -> Searched:
    """The search with the messages that show items, and what is known of them: of a document the
    piece that is nearest to the question."""
    context, message_ids = searched.scope.context, list(items)
    if context.source is Source.DOCUMENT:
        statement = STATEMENTS.for_width("best_pieces", searched.generation.width)
        rows = await db.fetch_all(connection, statement, _parameters(searched, items))
        message_ids = [row[0] for row in rows]
    generation = searched.generation
    extras = await load_messages(connection, context, message_ids, generation.generation_id)
    shown = [one.message.message_id for one in extras]
    known = searched.known
    more = await read_signals(connection, generation, searched.scope, searched.query, shown)
    return replace(
        searched,
        extras=extras,
        known=Signals(known.cosines | more.cosines, known.coverages | more.coverages),
    )


def _parameters(searched: Searched, items: Sequence[str]) -> dict[str, Any]:
    return parameters_of(searched.generation, searched.scope, searched.query) | {
        "channel_ids": list(searched.scope.context.channel_ids),
        "items": list(items),
    }


def _chat_item(one: StoredMessage) -> Item:
    """As the statement message_items names it."""
    message = one.message
    posted = message.posted_at.astimezone(UTC)
    return Item(one.source_uri, f"{message.author_name}, {posted:%Y-%m-%d %H:%M}", posted)


def _item(row: TupleRow) -> Item:
    item_id, name, written_at, valid_from, valid_until, invalid_metadata, depends_on = row
    return Item(
        item_id, name, written_at, valid_from, valid_until, invalid_metadata, tuple(depends_on)
    )


def _hit(one: StoredMessage, confidence: float | None = None) -> Hit:
    return Hit(one.message.message_id, one.source_uri, confidence)
