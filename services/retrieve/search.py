"""Search: the best messages for a question, from one pinned generation, or why there are none."""

from __future__ import annotations

import string
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime

import grpc

from recall.error.v1 import error_pb2
from services.corpus import Filter, QueryContext
from services.embedding.registry import Embedders
from services.retrieve.arms import Query, Rankings, read_signals, run_arms
from services.retrieve.context import NOTHING_READABLE
from services.retrieve.filters import override
from services.retrieve.fusion import Arm, Candidate, FusedMessage, reciprocal_rank_fusion
from services.retrieve.graph import neighbours
from services.retrieve.judging import Judgement, judge_hits
from services.retrieve.lexical_query import distinct_words, lexical_query
from services.retrieve.published_calibration import (
    Absent,
    Published,
    is_strict,
    read_calibration,
    refusal,
)
from services.retrieve.question_signals import Searched
from services.retrieve.resolve_pin import Generation, read_generation
from services.retrieve.scope import Scope, Unresolved, resolve_scope
from services.retrieve.stored_messages import StoredMessage, load_messages
from services.retrieve.supersession import Clocks
from services.retrieve.trust import Judged
from services.runtime import db
from services.runtime.errors import CallError, invalid
from services.typed_filters import take_filters

MAX_QUESTION_CHARACTERS = 20_000
DEFAULT_LIMIT = 12
MAX_LIMIT = 50
DENSE_INCOMPLETE = "dense_incomplete"
NOTHING_FOUND = "No message that you can read matches the question and its filters."


@dataclass(frozen=True)
class Question:
    """One question. ``limit`` 0 means 12; an empty pin means the serving generation."""

    context: QueryContext
    text: str
    filter: Filter = field(default_factory=Filter)
    generation_id: str = ""
    limit: int = 0
    expected_embedder_fingerprint: str = ""
    # For validation and calibration: a pinned generation that does not serve yet will do.
    may_be_unserved: bool = False
    # Whether to refuse without a certified calibration; None leaves it to the workspace.
    is_strict: bool | None = None
    # None: now. See ``supersession.Clocks``.
    valid_at: datetime | None = None
    known_as_of: datetime | None = None
    with_signals: bool = False
    # Documents whose neighbours are judged instead of what both arms found.
    neighbours_of: tuple[str, ...] = ()


@dataclass(frozen=True)
class Retrieval:
    """What a search works with. ``now`` is UTC; ``monotonic`` counts seconds."""

    pool: db.Pool
    embedders: Embedders
    now: Callable[[], datetime]
    monotonic: Callable[[], float]


@dataclass(frozen=True)
class FoundMessage:
    """A message, what raised it (nothing, when it replaces a hit), and the gate's judgement."""

    stored: StoredMessage
    fused: FusedMessage
    judged: Judged
    cosine: float | None
    term_coverage: float | None
    signals: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Found:
    """What a search answers. Unless something qualified ``reason`` says why nothing did;
    ``timings_ms`` is by step. ``confidence`` and ``threshold`` are absent without a calibration.
    """

    generation_id: str
    question: str
    filter: Filter
    messages: tuple[FoundMessage, ...] = ()
    reason: str = ""
    degraded: tuple[str, ...] = ()
    lists: dict[Arm, list[Candidate]] = field(default_factory=dict)
    lexical_query: str = ""
    embedder_model: str = ""
    timings_ms: dict[str, float] = field(default_factory=dict)
    confidence: float | None = None
    threshold: float | None = None
    calibration_id: str = ""
    question_signals: dict[str, float] = field(default_factory=dict)
    weighed_signals: dict[str, float] = field(default_factory=dict)


async def search(question: Question, retrieval: Retrieval) -> Found:
    """Pin, embed, read both arms, fuse, load the best, judge them.

    Raises CallError INVALID_ARGUMENT for a question that can not be searched, FAILED_PRECONDITION
    (EMBEDDER_MISMATCH, EMBEDDER_UNAVAILABLE, NO_ACTIVE_GENERATION; under strict trust
    CALIBRATION_MISSING, CALIBRATION_UNCERTIFIED, CALIBRATION_STALE, all before anything is
    retrieved), NOT_FOUND (GENERATION_NOT_FOUND, WORKSPACE_NOT_FOUND), UNAVAILABLE.
    """
    question = _understood(question, retrieval.now())
    found = Found(question.generation_id, question.text, question.filter)
    if not question.context.channel_ids:
        return replace(found, reason=NOTHING_READABLE)
    generation, scope = await _pinned(question, retrieval.pool)
    found = replace(
        found,
        generation_id=generation.generation_id,
        embedder_model=generation.embedder_model,
        lexical_query=lexical_query(question.text),
    )
    if isinstance(scope, Unresolved):
        return replace(found, reason=scope.reason)
    began = retrieval.monotonic()
    query = await _embedded(question, generation, retrieval.embedders)
    embedded = retrieval.monotonic()
    found = await _read(found, question, scope, query, retrieval)
    return replace(
        found,
        reason=found.reason if found.messages else NOTHING_FOUND,
        timings_ms={
            "embed": (embedded - began) * 1000,
            "search": (retrieval.monotonic() - embedded) * 1000,
        },
    )


def _understood(question: Question, now: datetime) -> Question:
    """The question without its typed filters, with the filters and limit that apply."""
    if len(question.text) > MAX_QUESTION_CHARACTERS:
        raise invalid(
            "question",
            f"has {len(question.text)} characters; at most {MAX_QUESTION_CHARACTERS} can be asked",
        )
    if not question.text.strip():
        raise invalid("question", "is empty; write what to look for")
    if not 0 <= question.limit <= MAX_LIMIT:
        raise invalid("limit", f"is {question.limit}; must be 1 to {MAX_LIMIT}, or 0 for 12")
    text, typed = take_filters(question.text, now)
    if typed != Filter() and not text.strip(string.punctuation + string.whitespace):
        raise invalid(
            "question", "holds only filters; add what to look for, or read the timeline instead"
        )
    narrowing = override(question.filter, typed)
    return replace(question, text=text, filter=narrowing, limit=question.limit or DEFAULT_LIMIT)


async def _pinned(question: Question, pool: db.Pool) -> tuple[Generation, Scope | Unresolved]:
    context = question.context
    async with db.reading(pool, context.workspace_id) as connection:
        generation = await read_generation(
            connection,
            context,
            question.generation_id,
            may_be_unserved=question.may_be_unserved,
        )
        expected = question.expected_embedder_fingerprint
        if expected and expected != generation.embedder_fingerprint:
            raise _mismatch(generation)
        if await is_strict(connection, context, question.is_strict):
            calibration = await read_calibration(connection, context, generation)
            if isinstance(calibration, Absent):
                raise refusal(generation, calibration)
        return generation, await resolve_scope(connection, context, question.filter)


async def _embedded(question: Question, generation: Generation, embedders: Embedders) -> Query:
    embedder = embedders.by_fingerprint(generation.embedder_fingerprint)
    return Query(
        vector=await embedder.embed_question(question.text),
        lexical_query=lexical_query(question.text),
        words=tuple(distinct_words(question.text)),
    )


async def _read(
    found: Found, question: Question, scope: Scope, query: Query, retrieval: Retrieval
) -> Found:
    """Both arms, the texts, the threshold and what replaces what, from one snapshot."""
    clocks = Clocks(question.valid_at or retrieval.now(), question.known_as_of)
    async with db.reading(retrieval.pool, scope.context.workspace_id) as connection:
        # Again: since the pin was read, its generation may have lost its rows.
        generation = await read_generation(
            connection,
            scope.context,
            found.generation_id,
            may_be_unserved=question.may_be_unserved,
        )
        rankings = await run_arms(connection, generation, scope, query)
        best = _best(rankings, question.limit)
        if question.neighbours_of:
            seeds = question.neighbours_of
            best = await neighbours(connection, generation, scope, query, seeds)
        ids = [message.message_id for message in best]
        stored = await load_messages(connection, scope.context, ids, generation.generation_id)
        known = await read_signals(connection, generation, scope, query, ids)
        calibration = await read_calibration(connection, scope.context, generation)
        searched = Searched(generation, scope, question.text, query, rankings, known, stored)
        judgement = await judge_hits(
            connection, searched, calibration, clocks, question.with_signals
        )
    found = replace(
        found,
        messages=_joined(best, judgement)[: question.limit],
        degraded=(DENSE_INCOMPLETE,) if rankings.dense_incomplete else (),
        lists=rankings.lists,
        reason=judgement.reason,
        confidence=judgement.confidence,
        question_signals=judgement.measured.question if judgement.measured else {},
        weighed_signals=judgement.weighed,
    )
    if isinstance(calibration, Published):
        found = replace(
            found,
            calibration_id=calibration.calibration_id,
            threshold=calibration.model.threshold,
        )
    return found


def _best(rankings: Rankings, limit: int) -> list[FusedMessage]:
    return reciprocal_rank_fusion(rankings.lists, rankings.posted_at)[:limit]


def _joined(best: list[FusedMessage], judgement: Judgement) -> tuple[FoundMessage, ...]:
    fused = {message.message_id: message for message in best}
    known = judgement.known
    return tuple(
        FoundMessage(
            stored=judgement.stored[judged.hit.hit_id],
            fused=fused.get(judged.hit.hit_id, FusedMessage(judged.hit.hit_id, ())),
            judged=judged,
            cosine=known.cosines.get(judged.hit.hit_id),
            term_coverage=known.coverages.get(judged.hit.hit_id),
            signals=judgement.signals.get(judged.hit.hit_id, {}),
        )
        for judged in judgement.judged
    )


def _mismatch(generation: Generation) -> CallError:
    return CallError(
        grpc.StatusCode.FAILED_PRECONDITION,
        error_pb2.ERROR_REASON_EMBEDDER_MISMATCH,
        f"Generation {generation.generation_id!r} was built with {generation.embedder_model} "
        f"(fingerprint {generation.embedder_fingerprint[:12]}), not with the embedder that the "
        "call expects. Expect that one, or build and promote a generation with the other.",
    )
