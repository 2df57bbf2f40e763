"""Reads what the trust gate needs, in the search's own transaction, and lets it judge."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
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
    items: dict[str, Item]
    known: Signals
    reason: str
    confidence: float | None = None
    measured: Measured | None = None
    # What each signal of the question adds, in logits.
    weighed: dict[str, float] = field(default_factory=dict)

    def signals_of(self, hit_id: str) -> dict[str, float]:
        """Raw signals of one hit; empty unless they were measured."""
        if self.measured is None:
            return {}
        return dict(zip(self.stored, self.measured.hits, strict=True)).get(hit_id, {})


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
    extras = await _load_items(connection, searched, successors_wanted(plain, knowledge))
    searched = replace(searched, extras=extras, known=await _known_of(connection, searched, extras))
    published = calibration if isinstance(calibration, Published) else None
    measured = None
    if published or with_signals:
        measured = await read_question_signals(connection, searched)
    shown = [*searched.stored, *extras]
    hits, confidence = [_hit(one) for one in shown], None
    weighed: dict[str, float] = {}
    if published and measured:
        confidence = question_confidence(published.model, measured.question)
        weighed = contributions(published.model, measured.question)
        confidences = hit_confidences(published.model, measured.question, measured.hits)
        hits = [_hit(one, known) for one, known in zip(shown, confidences, strict=True)]
        knowledge = Knowledge(clocks, knowledge.items, knowledge.edges, published.model.threshold)
    judged = judge(hits, knowledge)
    return Judgement(
        judged=tuple(judged),
        stored={one.message.message_id: one for one in shown},
        items=dict(knowledge.items),
        known=searched.known,
        reason=abstention(judged, knowledge),
        confidence=confidence,
        measured=measured,
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
    wanted = list(dict.fromkeys([*wanted, *(e.newer for e in edges), *(e.older for e in edges)]))
    rows = await db.fetch_all(
        connection,
        STATEMENTS["document_items" if is_document else "message_items"],
        _parameters(searched, wanted),
    )
    items = [_item(row) for row in rows]
    return Knowledge(clocks, {item.item_id: item for item in items}, edges)


async def _load_items(
    connection: db.Connection, searched: Searched, items: Sequence[str]
) -> list[StoredMessage]:
    """The messages that show items: of a document the piece that is nearest to the question."""
    context, message_ids = searched.scope.context, list(items)
    if items and context.source is Source.DOCUMENT:
        statement = STATEMENTS.for_width("best_pieces", searched.generation.width)
        rows = await db.fetch_all(connection, statement, _parameters(searched, items))
        message_ids = [row[0] for row in rows]
    return await load_messages(connection, context, message_ids, searched.generation.generation_id)


async def _known_of(
    connection: db.Connection, searched: Searched, extras: Sequence[StoredMessage]
) -> Signals:
    """What is known of the hits and of the extras."""
    message_ids = [one.message.message_id for one in extras]
    more = await read_signals(
        connection, searched.generation, searched.scope, searched.query, message_ids
    )
    known = searched.known
    return Signals({**known.cosines, **more.cosines}, {**known.coverages, **more.coverages})


def _parameters(searched: Searched, items: Sequence[str]) -> dict[str, Any]:
    return parameters_of(searched.generation, searched.scope, searched.query) | {
        "channel_ids": list(searched.scope.context.channel_ids),
        "items": list(items),
    }


def _item(row: TupleRow) -> Item:
    item_id, name, written_at, valid_from, valid_until, invalid_metadata, depends_on = row
    return Item(
        item_id, name, written_at, valid_from, valid_until, invalid_metadata, tuple(depends_on)
    )


def _hit(one: StoredMessage, confidence: float | None = None) -> Hit:
    return Hit(one.message.message_id, one.source_uri, confidence)
