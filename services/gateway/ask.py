"""One question, from its words to one checked answer. The order of the stages stands only here."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field

from recall.answer.v1 import answer_pb2
from recall.corpus.v1 import corpus_pb2
from recall.gateway.v1 import gateway_pb2
from recall.rerank.v1 import rerank_pb2
from recall.retrieve.v1 import retrieve_pb2
from services.gateway.checking import (
    ANSWER_UNAVAILABLE,
    UNUSABLE_REPLY,
    Checked,
    abstained,
    check,
    is_usable,
    suppressed,
    unwritten,
)
from services.gateway.clients import Stages, reach
from services.gateway.deadline import Deadline, Stopwatch
from services.gateway.ranking import Ranked, qualified, reranked, unranked
from services.gateway.reread import still_unchanged
from services.gateway.trust import Trust, refused
from services.runtime.errors import CallError

ASK_SECONDS = 60.0
EVIDENCE_LIMIT = 12
PIN_SECONDS = 5.0
SEARCH_SECONDS = 15.0
# The reranker's own limit is 4.5 s; with little time left it gets less, so that an answer can
# still be written.
RERANK_SECONDS = 5.0
RERANK_PART = 0.4
ANSWER_SECONDS = 40.0

Event = gateway_pb2.Progress | gateway_pb2.Answer


@dataclass(frozen=True)
class Question:
    """What is asked, by whom. ``context`` is built by the edge, never by the asker.

    ``ask_id`` is opaque and goes to the reranking provider; ``asker`` is a hash and goes to the
    writing provider.
    """

    text: str
    context: corpus_pb2.QueryContext
    narrowing: corpus_pb2.Filter
    explain: bool = False
    ask_id: str = ""
    asker: str = ""
    trust: Trust = field(default_factory=Trust)


async def ask(
    question: Question, stages: Stages, deadline: Deadline
) -> AsyncGenerator[Event, None]:
    """Progress steps, then exactly one answer. No text leaves before it is checked.

    Without a reranker the fused order is kept, without a writer the ranked messages are returned,
    both marked in ``degraded``. Only hits that the trust gate lets through are evidence; without
    trust the question is refused. Raises CallError when retrieve fails: that is never "no results".
    """
    stopwatch = Stopwatch(deadline.clock)
    yield _progress(gateway_pb2.STEP_SEARCHING, "Searching the messages you can read.")
    try:
        found = await search(question, stages, deadline)
    except CallError as error:
        if not error.is_refusal:
            raise
        yield refused(error, stopwatch.milliseconds())
        return
    stopwatch.lap("retrieve")
    evidence = qualified(found.hits)[:EVIDENCE_LIMIT]
    if found.abstained or not evidence:
        kept = await _kept(question, found, stages, deadline)
        answer = _answer(question, found, abstained(found.reason), stopwatch)
        answer.hits.extend(hit for hit in found.hits if hit.message.message_id in kept)
        yield answer
        return
    yield _progress(gateway_pb2.STEP_RERANKING, f"Ordering {_counted(len(evidence))}.")
    ranked = await rerank(question, found.question, evidence, stages, deadline)
    stopwatch.lap("rerank")
    yield _progress(gateway_pb2.STEP_WRITING, "Writing an answer from the best of them.")
    written = await write(question, found.question, ranked, stages, deadline)
    stopwatch.lap("answer")
    yield _progress(gateway_pb2.STEP_CHECKING, "Checking the sources.")
    kept = await _kept(question, found, stages, deadline)
    checked, sources = verify(written, ranked, kept)
    stopwatch.lap("check")
    answer = _answer(question, found, checked, stopwatch, ranked)
    answer.unverified_sources.extend(sources)
    answer.hits.extend(hit for hit in found.hits if hit.message.message_id in kept)
    if isinstance(written, answer_pb2.WrittenText):
        answer.writer = written.writer
    yield answer


async def search(
    question: Question, stages: Stages, deadline: Deadline
) -> retrieve_pb2.SearchResponse:
    """Pin the serving generation and search it."""
    pin_request = retrieve_pb2.ResolvePinRequest(context=question.context)
    seconds = deadline.share(PIN_SECONDS)
    resolved = await reach("retrieve", stages.retriever.ResolvePin, pin_request, seconds)
    request = retrieve_pb2.SearchRequest(
        context=question.context,
        question=question.text,
        filter=question.narrowing,
        pin=resolved.pin,
        limit=EVIDENCE_LIMIT,
        explain=question.explain,
        expected_embedder_fingerprint=resolved.embedder_fingerprint,
        trust_mode=question.trust.mode,
        valid_at=question.trust.valid_at,
        known_as_of=question.trust.known_as_of,
    )
    seconds = deadline.share(SEARCH_SECONDS)
    return await reach("retrieve", stages.retriever.Search, request, seconds)


async def rerank(
    question: Question,
    words: str,
    hits: Sequence[corpus_pb2.Hit],
    stages: Stages,
    deadline: Deadline,
) -> Ranked:
    """The hits in the reranker's order, or in fused order when there is no reranker; never across
    groups of verdicts."""
    request = rerank_pb2.RerankRequest(
        question=words or question.text,
        messages=[hit.message for hit in hits],
        session_id=question.ask_id,
    )
    seconds = deadline.share(RERANK_SECONDS, RERANK_PART)
    try:
        response = await reach("rerank", stages.reranker.Rerank, request, seconds)
    except CallError:
        return unranked(hits)
    return reranked(hits, response)


async def write(
    question: Question, words: str, ranked: Ranked, stages: Stages, deadline: Deadline
) -> answer_pb2.WrittenText | str:
    """The written text, or why none could be written."""
    request = answer_pb2.WriteAnswerRequest(
        question=words or question.text,
        evidence=ranked.evidence(),
        safety_identifier=question.asker,
    )
    seconds = deadline.share(ANSWER_SECONDS)
    try:
        reply = await reach("answer", stages.writer.WriteAnswer, request, seconds)
    except CallError as error:
        return error.message
    return reply.written if is_usable(reply.written) else UNUSABLE_REPLY


def verify(
    written: answer_pb2.WrittenText | str, ranked: Ranked, kept: set[str]
) -> tuple[Checked, list[corpus_pb2.Hit]]:
    """What may be shown: a checked text, or the ranked messages that still read the same.

    ``kept`` are the ids of the messages that do.
    """
    if isinstance(written, str):
        return unwritten(written), [hit for hit in ranked.hits if hit.message.message_id in kept]
    checked = check(written, ranked.messages())
    still = all(message.message_id in kept for message in checked.citations)
    return (checked if still else suppressed()), []


async def _kept(
    question: Question, found: retrieve_pb2.SearchResponse, stages: Stages, deadline: Deadline
) -> set[str]:
    """Ids of the hits that still exist for the asker and read the same."""
    messages = [hit.message for hit in found.hits]
    return await still_unchanged(messages, question.context, stages, deadline)


def _answer(
    question: Question,
    found: retrieve_pb2.SearchResponse,
    checked: Checked,
    stopwatch: Stopwatch,
    ranked: Ranked | None = None,
) -> gateway_pb2.Answer:
    sources_only = checked.outcome == corpus_pb2.OUTCOME_SOURCES_ONLY
    return gateway_pb2.Answer(
        outcome=checked.outcome,
        text=checked.text,
        reason=checked.reason,
        citations=checked.citations,
        rerank_tier=ranked.tier if ranked else rerank_pb2.TIER_UNSPECIFIED,
        generation_id=found.pin.generation_id,
        degraded=[
            *found.degraded,
            *(ranked.degraded if ranked else ()),
            *([ANSWER_UNAVAILABLE] if sources_only else ()),
        ],
        timings_ms=stopwatch.milliseconds(),
        trace=_trace(found, ranked) if question.explain else None,
        confidence=found.confidence if found.HasField("confidence") else None,
        calibration_id=found.calibration_id,
    )


def _trace(found: retrieve_pb2.SearchResponse, ranked: Ranked | None) -> gateway_pb2.Trace:
    return gateway_pb2.Trace(
        question=found.question,
        filter=found.filter,
        hits=found.hits,
        explanation=found.explanation,
        rerank=ranked.response if ranked else None,
    )


def _progress(step: gateway_pb2.Step.ValueType, detail: str) -> gateway_pb2.Progress:
    return gateway_pb2.Progress(step=step, detail=detail)


def _counted(messages: int) -> str:
    return "1 message" if messages == 1 else f"{messages} messages"
