"""Labelled questions with the signals that retrieve measures of them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import grpc

from evals.asking import EvaluationError
from evals.datasets import Dataset, Question
from evals.figures import EVIDENCE_SIZE
from recall.corpus.v1 import corpus_pb2
from recall.retrieve.v1 import retrieve_pb2, retrieve_pb2_grpc
from services.cli.connection import CALLER
from services.runtime.callers import FILE_NAME, Callers
from services.runtime.client import Peer
from services.runtime.config import Settings
from services.runtime.errors import from_rpc_error

SEARCHES = 2
SEARCH_SECONDS = 60.0


@dataclass(frozen=True)
class Signalled:
    """A question and its raw signals by name."""

    question: Question
    signals: Mapping[str, float]


async def read_signals(
    environ: Mapping[str, str], dataset: Dataset, questions: Sequence[Question]
) -> tuple[Signalled, ...]:
    """Search each question in what its reader may read. Raises EvaluationError."""
    settings = Settings(environ)
    callers = Callers(settings.home() / FILE_NAME)
    peer = Peer(settings.target("retrieve"), lambda: callers.token_of(CALLER))
    settings.done()
    stub = retrieve_pb2_grpc.RetrieveServiceStub(peer.channel())
    turns = asyncio.Semaphore(SEARCHES)

    async def read(question: Question) -> Signalled:
        async with turns:
            try:
                reply = await stub.Search(_request(dataset, question), timeout=SEARCH_SECONDS)
            except grpc.aio.AioRpcError as error:
                failed = from_rpc_error(error)
                raise EvaluationError(
                    f"{question.question_id}: {failed.reason_name}: {failed.message}"
                ) from None
        return Signalled(question, dict(reply.question_signals))

    try:
        return tuple(await asyncio.gather(*(read(question) for question in questions)))
    finally:
        await peer.close()


def _request(dataset: Dataset, question: Question) -> retrieve_pb2.SearchRequest:
    return retrieve_pb2.SearchRequest(
        context=corpus_pb2.QueryContext(
            source=corpus_pb2.SOURCE_SYNTHETIC,
            workspace_id=dataset.workspace,
            channel_ids=sorted(question.readable),
        ),
        question=question.text,
        limit=EVIDENCE_SIZE,
        trust_mode=corpus_pb2.TRUST_MODE_RELAXED,
        with_signals=True,
    )
