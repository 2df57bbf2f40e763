"""Every question over gRPC, as any other client asks it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable

import grpc

from evals.datasets import Dataset, Question
from evals.figures import Asked, Found
from evals.judgements import GivenAnswer
from evals.leaks import LeakDetector
from recall.corpus.v1 import corpus_pb2
from recall.gateway.v1 import gateway_pb2
from recall.retrieve.v1 import retrieve_pb2
from services.cli.as_json import outcome_name, tier_name
from services.cli.connection import Stack
from services.runtime.errors import from_rpc_error

# The most that a search returns: the ranking that MRR looks at.
SEARCH_LIMIT = 50
SEARCH_SECONDS = 30.0
ASK_SECONDS = 90.0
INCOMPLETE = "dense_incomplete"


class EvaluationError(Exception):
    """A question could not be measured; a run without it would be another measurement."""


async def search(stack: Stack, dataset: Dataset, question: Question) -> retrieve_pb2.SearchResponse:
    """One explained search. Raises EvaluationError when it fails or was incomplete."""
    request = gateway_pb2.SearchRequest(
        reader=_reader(dataset, question),
        question=question.text,
        filter=corpus_pb2.Filter(in_channel=question.in_channel),
        limit=SEARCH_LIMIT,
        explain=True,
    )
    try:
        reply = await stack.gateway.Search(request, timeout=SEARCH_SECONDS)
    except grpc.aio.AioRpcError as error:
        raise _failed(question, error) from None
    _require_complete(question, reply.result.degraded)
    return reply.result


async def search_all(
    stack: Stack, dataset: Dataset, questions: Iterable[Question]
) -> AsyncIterator[Found]:
    """The rankings of questions, one after another."""
    detector = LeakDetector(dataset.messages)
    for question in questions:
        reply = await search(stack, dataset, question)
        dense, lexical = _lists(reply.explanation.dense), _lists(reply.explanation.lexical)
        yield Found(
            question=question,
            served=tuple(hit.message.message_id for hit in reply.hits),
            dense=dense,
            lexical=lexical,
            leaks=(
                *detector.leaks_of(reply, question.readable),
                *_nameless_chunks(dense, lexical),
            ),
        )


async def ask_all(
    stack: Stack, dataset: Dataset, questions: Iterable[Question]
) -> AsyncIterator[Asked]:
    """The answers to questions, one after another, each with its trace."""
    detector = LeakDetector(dataset.messages)
    for question in questions:
        events = await _ask(stack, dataset, question)
        final = events[-1].answer
        _require_complete(question, final.degraded)
        leaks = [leak for event in events for leak in detector.leaks_of(event, question.readable)]
        yield Asked(
            question=question,
            given=GivenAnswer(
                outcome=outcome_name(final.outcome),
                text=final.text,
                cited=tuple(message.message_id for message in final.citations),
                evidence=tuple(hit.message.message_id for hit in final.trace.hits),
            ),
            leaks=tuple(leaks),
            degraded=tuple(final.degraded),
            tier=tier_name(final.rerank_tier),
            writer=final.writer,
        )


async def _ask(stack: Stack, dataset: Dataset, question: Question) -> list[gateway_pb2.AskResponse]:
    request = gateway_pb2.AskRequest(
        reader=_reader(dataset, question),
        question=question.text,
        filter=corpus_pb2.Filter(in_channel=question.in_channel),
        explain=True,
    )
    try:
        events = [event async for event in stack.gateway.Ask(request, timeout=ASK_SECONDS)]
    except grpc.aio.AioRpcError as error:
        raise _failed(question, error) from None
    if not events or not events[-1].HasField("answer"):
        raise EvaluationError(f"{question.question_id}: the stream ended without an answer.")
    return events


def _reader(dataset: Dataset, question: Question) -> gateway_pb2.Reader:
    return gateway_pb2.Reader(
        workspace_id=dataset.workspace, channel_ids=question.reader_channels or ()
    )


def _lists(candidates: Iterable[retrieve_pb2.Candidate]) -> list[tuple[str, ...]]:
    ordered = sorted(candidates, key=lambda candidate: candidate.rank)
    return [tuple(candidate.message_ids) for candidate in ordered]


def _nameless_chunks(*arms: list[tuple[str, ...]]) -> list[str]:
    """A listed chunk without a readable message gives away that something is there."""
    return [
        f"explanation: the chunk at rank {rank} names no message that the reader may read"
        for arm in arms
        for rank, chunk in enumerate(arm)
        if not chunk
    ]


def _require_complete(question: Question, degraded: Iterable[str]) -> None:
    if INCOMPLETE in degraded:
        raise EvaluationError(
            f"{question.question_id}: vectors are still being made. Wait for `recall status` to "
            "show none missing, then measure again."
        )


def _failed(question: Question, raised: grpc.aio.AioRpcError) -> EvaluationError:
    error = from_rpc_error(raised)
    return EvaluationError(f"{question.question_id}: {error.reason_name}: {error.message}")
