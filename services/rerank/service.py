"""RerankService: from proto, to the use case, to proto."""

from __future__ import annotations

from typing import Any

import grpc

from recall.rerank.v1 import rerank_pb2, rerank_pb2_grpc
from services.corpus import Message, message_from_proto
from services.rerank.rerank import TOTAL_SECONDS, FailedTier, Ranking, Reranker, Tier
from services.runtime import call
from services.runtime.errors import invalid

SERVICE_NAME = "recall.rerank.v1.RerankService"
# The Decisions API takes no more.
MAX_SESSION_ID = 256

_TIERS = {
    Tier.JEV: rerank_pb2.TIER_JEV,
    Tier.LUNA: rerank_pb2.TIER_LUNA,
    Tier.RRF: rerank_pb2.TIER_RRF,
}


class RerankServicer(rerank_pb2_grpc.RerankServiceServicer):
    """Serves Rerank."""

    def __init__(self, reranker: Reranker) -> None:
        self._reranker = reranker

    async def Rerank(  # noqa: N802
        self, request: rerank_pb2.RerankRequest, context: grpc.aio.ServicerContext[Any, Any]
    ) -> rerank_pb2.RerankResponse:
        """Order the messages of a request."""
        messages = _messages(request)
        remaining = call.remaining_seconds(TOTAL_SECONDS + 1)
        ranking = await self._reranker.rerank(
            request.question, messages, request.session_id, remaining
        )
        return _response(messages, ranking)


def _messages(request: rerank_pb2.RerankRequest) -> list[Message]:
    """The request's messages. Raises INVALID_ARGUMENT naming the field that can not be used."""
    if request.messages and not request.question.strip():
        raise invalid("question", "is empty; send the question the messages were found for.")
    if len(request.session_id) > MAX_SESSION_ID:
        raise invalid("session_id", f"is longer than {MAX_SESSION_ID} characters; shorten it.")
    for position, message in enumerate(request.messages):
        if not message.message_id or not message.HasField("posted_at"):
            raise invalid(f"messages[{position}]", "needs a message_id and a posted_at.")
    return [message_from_proto(message) for message in request.messages]


def _response(messages: list[Message], ranking: Ranking) -> rerank_pb2.RerankResponse:
    return rerank_pb2.RerankResponse(
        ranking=[_ranked(messages, position, ranking) for position in ranking.positions],
        tier=_TIERS[ranking.tier],
        failed_tiers=[_failed(failed) for failed in ranking.failed_tiers],
        model=ranking.model,
        answerable=ranking.answerable,
    )


def _ranked(messages: list[Message], position: int, ranking: Ranking) -> rerank_pb2.RankedMessage:
    scored = position < len(ranking.scores)
    return rerank_pb2.RankedMessage(
        message_id=messages[position].message_id,
        score=ranking.scores[position] if scored else None,
    )


def _failed(failed: FailedTier) -> rerank_pb2.FailedTier:
    return rerank_pb2.FailedTier(tier=_TIERS[failed.tier], cause=failed.cause, detail=failed.detail)
