"""AnswerService: from proto, to the use case, to proto."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import grpc

from recall.answer.v1 import answer_pb2, answer_pb2_grpc
from recall.corpus.v1 import corpus_pb2
from services.answer.citations import Outcome
from services.answer.decisions import Decision
from services.answer.evidence import Evidence
from services.answer.rewrite_question import rewrite_question
from services.answer.write_answer import WrittenText, write_answer
from services.answer.write_catch_up import write_catch_up
from services.answer.write_decisions import write_decisions
from services.answer.write_summary import write_summary
from services.answer.writer import Writer
from services.corpus import Message, message_from_proto
from services.runtime.errors import invalid

SERVICE_NAME = "recall.answer.v1.AnswerService"
Context = grpc.aio.ServicerContext[Any, Any]

_OUTCOMES = {
    Outcome.ANSWERED: corpus_pb2.OUTCOME_ANSWERED,
    Outcome.ABSTAINED: corpus_pb2.OUTCOME_ABSTAINED,
    Outcome.UNVERIFIED: corpus_pb2.OUTCOME_UNVERIFIED,
}


class AnswerServicer(answer_pb2_grpc.AnswerServiceServicer):
    """Serves the ways of writing with one writer."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer

    async def WriteAnswer(  # noqa: N802
        self, request: answer_pb2.WriteAnswerRequest, context: Context
    ) -> answer_pb2.WriteAnswerResponse:
        """Answer one question from its evidence."""
        if not request.question.strip():
            raise invalid("question", "is empty; send the question the evidence was found for.")
        written = await write_answer(
            self._writer, request.question, _evidence(request), request.safety_identifier
        )
        return answer_pb2.WriteAnswerResponse(written=_written(written))

    async def WriteCatchUp(  # noqa: N802
        self, request: answer_pb2.WriteCatchUpRequest, context: Context
    ) -> answer_pb2.WriteCatchUpResponse:
        """Tell what happened in a window."""
        written = await write_catch_up(self._writer, request.scope, _messages(request.messages))
        return answer_pb2.WriteCatchUpResponse(written=_written(written))

    async def WriteSummary(  # noqa: N802
        self, request: answer_pb2.WriteSummaryRequest, context: Context
    ) -> answer_pb2.WriteSummaryResponse:
        """Summarise a window."""
        written = await write_summary(self._writer, request.scope, _messages(request.messages))
        return answer_pb2.WriteSummaryResponse(written=_written(written))

    async def WriteDecisions(  # noqa: N802
        self, request: answer_pb2.WriteDecisionsRequest, context: Context
    ) -> answer_pb2.WriteDecisionsResponse:
        """List the decisions of a window."""
        messages = _messages(request.messages)
        written, decisions = await write_decisions(self._writer, request.scope, messages)
        return answer_pb2.WriteDecisionsResponse(
            written=_written(written), decisions=[_decision(one) for one in decisions]
        )

    async def RewriteQuestion(  # noqa: N802
        self, request: answer_pb2.RewriteQuestionRequest, context: Context
    ) -> answer_pb2.RewriteQuestionResponse:
        """Make a question that was asked inside a thread self-contained."""
        if not request.question.strip():
            raise invalid("question", "is empty; send the question that was asked in the thread.")
        thread = _messages(request.thread, "thread")
        made = await rewrite_question(self._writer, request.question, thread)
        return answer_pb2.RewriteQuestionResponse(
            question=made.question, is_rewritten=made.is_rewritten, model=made.model
        )


def _messages(wires: Iterable[corpus_pb2.Message], field: str = "messages") -> list[Message]:
    """Messages of a request. Raises INVALID_ARGUMENT naming the one that can not be used."""
    messages = []
    for position, wire in enumerate(wires):
        if not wire.message_id or not wire.HasField("posted_at"):
            raise invalid(f"{field}[{position}]", "needs a message_id and a posted_at.")
        messages.append(message_from_proto(wire))
    return messages


def _evidence(request: answer_pb2.WriteAnswerRequest) -> list[Evidence]:
    messages = _messages((wire.message for wire in request.evidence), "evidence")
    return [
        Evidence(
            message=message,
            fused_score=wire.fused_score,
            rerank_score=wire.rerank_score if wire.HasField("rerank_score") else None,
            cosine=wire.cosine if wire.HasField("cosine") else None,
            dense_rank=wire.dense_rank if wire.HasField("dense_rank") else None,
            lexical_rank=wire.lexical_rank if wire.HasField("lexical_rank") else None,
            term_coverage=wire.term_coverage if wire.HasField("term_coverage") else None,
        )
        for message, wire in zip(messages, request.evidence, strict=True)
    ]


def _written(written: WrittenText) -> answer_pb2.WrittenText:
    return answer_pb2.WrittenText(
        outcome=_OUTCOMES[written.checked.outcome],
        text=written.checked.text,
        reason=written.checked.reason,
        cited_message_ids=written.checked.cited_ids,
        writer=written.writer,
        model=written.model,
    )


def _decision(decision: Decision) -> answer_pb2.Decision:
    return answer_pb2.Decision(
        text=decision.text,
        message_id=decision.message_id,
        owner=decision.owner,
        replaces_message_id=decision.replaces_message_id,
    )
