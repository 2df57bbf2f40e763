"""From the contract's messages to the use cases' values and back."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from recall.corpus.v1 import corpus_pb2
from recall.retrieve.v1 import retrieve_pb2
from services.corpus import (
    Message,
    filter_from_proto,
    filter_to_proto,
    message_to_proto,
    timestamp,
)
from services.retrieve.context import checked_context, checked_text
from services.retrieve.fusion import Arm, Candidate, Contribution
from services.retrieve.read_timeline import Page, PageRequest
from services.retrieve.resolve_pin import Generation
from services.retrieve.search import Found, FoundMessage, Question
from services.retrieve.supersession import Verdict
from services.runtime.errors import invalid

_STRICT = {corpus_pb2.TRUST_MODE_STRICT: True, corpus_pb2.TRUST_MODE_RELAXED: False}
_VERDICTS = {verdict: corpus_pb2.Verdict.Value(f"VERDICT_{verdict.name}") for verdict in Verdict}
_ARMS = {Arm.DENSE: corpus_pb2.ARM_DENSE, Arm.LEXICAL: corpus_pb2.ARM_LEXICAL}


def question(request: retrieve_pb2.SearchRequest) -> Question:
    """The question of a request, its context checked."""
    return Question(
        context=checked_context(request.context),
        text=request.question,
        filter=filter_from_proto(request.filter),
        generation_id=checked_text("pin", request.pin.generation_id),
        limit=request.limit,
        expected_embedder_fingerprint=request.expected_embedder_fingerprint,
        may_be_unserved=request.may_be_unserved,
        is_strict=_STRICT.get(request.trust_mode),
        valid_at=_instant(request, "valid_at"),
        known_as_of=_instant(request, "known_as_of"),
        with_signals=request.with_signals,
    )


def expansion(request: retrieve_pb2.ExpandGraphRequest) -> Question:
    """The question that neighbours are judged for. Raises CallError INVALID_ARGUMENT."""
    if not request.source_uris:
        raise invalid("source_uris", "must name documents to start from")
    seeds = tuple(checked_text("source_uris", uri) for uri in dict.fromkeys(request.source_uris))
    return replace(question(request.search), neighbours_of=seeds)


def page_request(request: retrieve_pb2.ReadTimelineRequest) -> PageRequest:
    """Which page a request wants."""
    return PageRequest(request.page_size, request.page_token, request.newest_first)


def pin_response(generation: Generation) -> retrieve_pb2.ResolvePinResponse:
    """The serving generation for the wire."""
    return retrieve_pb2.ResolvePinResponse(
        pin=corpus_pb2.Pin(generation_id=generation.generation_id),
        embedder_fingerprint=generation.embedder_fingerprint,
    )


def _instant(request: retrieve_pb2.SearchRequest, name: str) -> datetime | None:
    return getattr(request, name).ToDatetime(UTC) if request.HasField(name) else None  # type: ignore[arg-type]


def search_response(
    found: Found, *, explain: bool, with_signals: bool
) -> retrieve_pb2.SearchResponse:
    """A search's result for the wire."""
    qualified = (Verdict.OK, Verdict.UNVERIFIED)
    return retrieve_pb2.SearchResponse(
        pin=corpus_pb2.Pin(generation_id=found.generation_id),
        hits=[_hit(message, found.generation_id) for message in found.messages],
        abstained=not any(one.judged.verdict in qualified for one in found.messages),
        reason=found.reason,
        question=found.question,
        filter=filter_to_proto(found.filter),
        degraded=found.degraded,
        explanation=_explanation(found) if explain else None,
        timings_ms=found.timings_ms,
        confidence=found.confidence,
        calibration_id=found.calibration_id,
        threshold=found.threshold,
        question_signals=found.question_signals if with_signals else {},
        hit_signals=[
            retrieve_pb2.HitSignals(values=one.signals) for one in found.messages if with_signals
        ],
        weighed_signals=found.weighed_signals if explain else {},
    )


def page_response(page: Page) -> retrieve_pb2.ReadTimelineResponse:
    """A page for the wire."""
    return retrieve_pb2.ReadTimelineResponse(
        messages=messages(page.messages),
        next_page_token=page.next_token,
        reason=page.reason,
        newest_at=timestamp(page.newest_at),
    )


def messages(found: list[Message] | tuple[Message, ...]) -> list[corpus_pb2.Message]:
    """Messages for the wire."""
    return [message_to_proto(message) for message in found]


def _hit(found: FoundMessage, generation_id: str) -> corpus_pb2.Hit:
    stored, judged = found.stored, found.judged
    return corpus_pb2.Hit(
        message=message_to_proto(stored.message),
        dense_rank=found.fused.rank_in(Arm.DENSE),
        lexical_rank=found.fused.rank_in(Arm.LEXICAL),
        fused_score=found.fused.score,
        contributions=[_contribution(part) for part in found.fused.contributions],
        verdict=_VERDICTS[judged.verdict],
        confidence=judged.confidence,
        provenance=corpus_pb2.Provenance(
            generation_id=generation_id,
            indexed_at=timestamp(stored.indexed_at),
            content_sha256=stored.message.content_sha256,
            source_uri=stored.source_uri,
            source_version=stored.source_version,
            source_sha256=stored.source_sha256,
            first_indexed_at=timestamp(stored.first_indexed_at),
        ),
        cosine=found.cosine,
        term_coverage=found.term_coverage,
        superseded_by=judged.superseded_by,
        supersedes=judged.supersedes,
        valid_from=stored.valid_from.isoformat() if stored.valid_from else "",
        valid_until=stored.valid_until.isoformat() if stored.valid_until else "",
    )


def _contribution(part: Contribution) -> corpus_pb2.Contribution:
    return corpus_pb2.Contribution(
        arm=_ARMS[part.arm],
        chunk_id=part.chunk_id,
        chunk_kind=part.chunk_kind,
        rank=part.rank,
        score=part.score,
    )


def _explanation(found: Found) -> retrieve_pb2.Explanation:
    return retrieve_pb2.Explanation(
        dense=_candidates(found.lists.get(Arm.DENSE, [])),
        lexical=_candidates(found.lists.get(Arm.LEXICAL, [])),
        lexical_query=found.lexical_query,
        embedder=found.embedder_model,
    )


def _candidates(chunks: list[Candidate]) -> list[retrieve_pb2.Candidate]:
    """The list's chunks at their ranks, without those that hold no message of the scope."""
    return [
        retrieve_pb2.Candidate(
            chunk_id=chunk.chunk_id,
            chunk_kind=chunk.chunk_kind,
            rank=rank,
            score=chunk.score,
            message_ids=chunk.message_ids,
        )
        for rank, chunk in enumerate(chunks)
        if chunk.message_ids
    ]
