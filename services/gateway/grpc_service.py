"""RecallService: for callers with an identity. Translates, nothing else."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from typing import Any

import grpc

from recall.corpus.v1 import corpus_pb2
from recall.gateway.v1 import gateway_pb2, gateway_pb2_grpc
from recall.retrieve.v1 import retrieve_pb2
from services.gateway.ask import ASK_SECONDS, SEARCH_SECONDS, Question, ask
from services.gateway.clients import Stages, reach
from services.gateway.context import query_context
from services.gateway.deadline import Deadline, deadline_in
from services.gateway.directory import Directory
from services.gateway.reason import reason
from services.gateway.reason_trail import budget_of
from services.gateway.reread import REREAD_SECONDS
from services.gateway.search_only import search_only
from services.gateway.status import get_status
from services.gateway.trust import clocks_of, trust_of
from services.gateway.window import WINDOW_SECONDS, Window, catch_up, list_decisions, summarise
from services.runtime import call as calls
from services.runtime.errors import invalid

SERVICE_NAME = "recall.gateway.v1.RecallService"
READ_SECONDS = 15.0

Context = grpc.aio.ServicerContext[Any, Any]


class RecallService(gateway_pb2_grpc.RecallServiceServicer):
    """Whole questions under the caller's rights."""

    def __init__(self, stages: Stages, directory: Directory) -> None:
        self._stages = stages
        self._directory = directory

    async def Ask(  # noqa: N802
        self, request: gateway_pb2.AskRequest, context: Context
    ) -> AsyncIterator[gateway_pb2.AskResponse]:
        """Progress, then one answer."""
        question = Question(
            text=worded(request.question),
            context=await self._context(request.reader),
            narrowing=request.filter,
            explain=request.explain,
            ask_id=calls.request_id(),
            asker=calls.caller().hashed,
            trust=trust_of(request),
        )
        async for event in ask(question, self._stages, _deadline(ASK_SECONDS)):
            yield as_ask_response(event)

    async def Search(  # noqa: N802
        self, request: gateway_pb2.SearchRequest, context: Context
    ) -> gateway_pb2.SearchResponse:
        """Hits of the serving generation, each with its verdict."""
        context_read = await self._context(request.reader)
        deadline = _deadline(SEARCH_SECONDS)
        found = await search_only(request, context_read, self._stages, deadline)
        return gateway_pb2.SearchResponse(result=found)

    async def CatchUp(  # noqa: N802
        self, request: gateway_pb2.CatchUpRequest, context: Context
    ) -> gateway_pb2.CatchUpResponse:
        """What happened in a window."""
        window = Window(await self._context(request.reader), request.filter)
        text = await catch_up(window, self._stages, _deadline(WINDOW_SECONDS))
        return gateway_pb2.CatchUpResponse(window=text)

    async def Summarise(  # noqa: N802
        self, request: gateway_pb2.SummariseRequest, context: Context
    ) -> gateway_pb2.SummariseResponse:
        """A summary of a window."""
        window = Window(await self._context(request.reader), request.filter)
        text = await summarise(window, self._stages, _deadline(WINDOW_SECONDS))
        return gateway_pb2.SummariseResponse(window=text)

    async def ListDecisions(  # noqa: N802
        self, request: gateway_pb2.ListDecisionsRequest, context: Context
    ) -> gateway_pb2.ListDecisionsResponse:
        """The decisions of a window."""
        window = Window(await self._context(request.reader), request.filter)
        text, decisions = await list_decisions(window, self._stages, _deadline(WINDOW_SECONDS))
        return gateway_pb2.ListDecisionsResponse(window=text, decisions=decisions)

    async def OpenThread(  # noqa: N802
        self, request: gateway_pb2.OpenThreadRequest, context: Context
    ) -> gateway_pb2.OpenThreadResponse:
        """The thread around one message."""
        wire = retrieve_pb2.ReadThreadRequest(
            context=await self._context(request.reader), message_id=request.message_id
        )
        seconds = _deadline(READ_SECONDS).left()
        thread = await reach("retrieve", self._stages.retriever.ReadThread, wire, seconds)
        return gateway_pb2.OpenThreadResponse(messages=thread.messages)

    async def Reason(  # noqa: N802
        self, request: gateway_pb2.ReasonRequest, context: Context
    ) -> AsyncIterator[gateway_pb2.ReasonResponse]:
        """Steps, then one result."""
        budget = budget_of(request.budget)
        question = Question(
            text=request.question,
            context=await self._context(request.reader),
            narrowing=request.filter,
            asker=calls.caller().hashed,
            trust=clocks_of(request),
        )
        deadline = _deadline(budget.milliseconds / 1000 + REREAD_SECONDS)
        async for event in reason(question, budget, self._stages, deadline, request.expand_graph):
            yield as_reason_response(event)

    async def GetStatus(  # noqa: N802
        self, request: gateway_pb2.GetStatusRequest, context: Context
    ) -> gateway_pb2.GetStatusResponse:
        """Stages and workspaces."""
        return await get_status(self._stages, self._directory, calls.caller())

    async def _context(self, reader: gateway_pb2.Reader) -> corpus_pb2.QueryContext:
        return await query_context(reader, calls.caller(), self._directory)


def worded(question: str) -> str:
    """The question. Raises CallError INVALID_ARGUMENT when it has no words."""
    if not question.strip():
        raise invalid("question", "must not be empty. Ask in a few words.")
    return question


def as_ask_response(event: gateway_pb2.Progress | gateway_pb2.Answer) -> gateway_pb2.AskResponse:
    """A step or the answer as the stream carries it."""
    if isinstance(event, gateway_pb2.Progress):
        return gateway_pb2.AskResponse(progress=event)
    return gateway_pb2.AskResponse(answer=event)


def as_reason_response(
    event: gateway_pb2.ReasonStep | gateway_pb2.ReasonResult,
) -> gateway_pb2.ReasonResponse:
    """A step or the result as the stream carries it."""
    if isinstance(event, gateway_pb2.ReasonStep):
        return gateway_pb2.ReasonResponse(step=event)
    return gateway_pb2.ReasonResponse(result=event)


def _deadline(seconds: float) -> Deadline:
    call = calls.current.get()
    return deadline_in(time.monotonic, seconds, call.deadline if call else None)
