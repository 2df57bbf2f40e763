"""The RPCs of AdminService about facts. Translates, nothing else."""

from __future__ import annotations

import time
from typing import Any

import grpc

from recall.corpus.v1 import corpus_pb2
from recall.gateway.v1 import admin_pb2, admin_pb2_grpc, gateway_pb2
from services.gateway.clients import Stages
from services.gateway.context import query_context
from services.gateway.deadline import Deadline, deadline_in
from services.gateway.directory import Directory
from services.gateway.facts import FACT_SECONDS, apply_fact, find_cards, list_facts
from services.runtime import call as calls
from services.runtime.callers import EVERYTHING, require_write

Context = grpc.aio.ServicerContext[Any, Any]


class FactMethods(admin_pb2_grpc.AdminServiceServicer):
    """What AdminService does with facts, for callers of whole workspaces or writers."""

    _stages: Stages
    _directory: Directory

    async def FindCards(  # noqa: N802
        self, request: admin_pb2.FindCardsRequest, context: Context
    ) -> admin_pb2.FindCardsResponse:
        """See the proto."""
        readable = await self._readable(request.reader)
        return await find_cards(request, readable, self._stages, _deadline())

    async def ApplyFact(  # noqa: N802
        self, request: admin_pb2.ApplyFactRequest, context: Context
    ) -> admin_pb2.ApplyFactResponse:
        """See the proto."""
        caller = calls.caller()
        if not {EVERYTHING} <= caller.channels & caller.workspaces:
            require_write(caller)
        readable = await self._readable(request.reader)
        result = await apply_fact(request, readable, caller.name, self._stages, _deadline())
        return admin_pb2.ApplyFactResponse(result=result)

    async def ListFacts(  # noqa: N802
        self, request: admin_pb2.ListFactsRequest, context: Context
    ) -> admin_pb2.ListFactsResponse:
        """See the proto."""
        readable = await self._readable(request.reader)
        facts = await list_facts(request, readable, self._stages, _deadline())
        return admin_pb2.ListFactsResponse(facts=facts)

    async def _readable(self, reader: gateway_pb2.Reader) -> corpus_pb2.QueryContext:
        return await query_context(reader, calls.caller(), self._directory)


def _deadline() -> Deadline:
    call = calls.current.get()
    return deadline_in(time.monotonic, FACT_SECONDS, call.deadline if call else None)
