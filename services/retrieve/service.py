"""RetrieveService: from the wire to the use cases and back."""

from __future__ import annotations

from typing import Any

import grpc

from recall.retrieve.v1 import retrieve_pb2, retrieve_pb2_grpc
from services.corpus import Filter, filter_from_proto
from services.retrieve import wire
from services.retrieve.context import checked_context, checked_text
from services.retrieve.filters import override
from services.retrieve.read_messages import read_messages
from services.retrieve.read_thread import read_thread
from services.retrieve.read_timeline import read_timeline
from services.retrieve.resolve_pin import resolve_pin
from services.retrieve.search import Retrieval, search

SERVICE_NAME = retrieve_pb2.DESCRIPTOR.services_by_name["RetrieveService"].full_name

Context = grpc.aio.ServicerContext[Any, Any]


class RetrieveServicer(retrieve_pb2_grpc.RetrieveServiceServicer):
    """Serves reads of one database under the asker's rights."""

    def __init__(self, retrieval: Retrieval) -> None:
        self._retrieval = retrieval
        self._pool = retrieval.pool

    async def ResolvePin(  # noqa: N802
        self, request: retrieve_pb2.ResolvePinRequest, context: Context
    ) -> retrieve_pb2.ResolvePinResponse:
        """The serving generation."""
        generation = await resolve_pin(self._pool, checked_context(request.context))
        return wire.pin_response(generation)

    async def Search(  # noqa: N802
        self, request: retrieve_pb2.SearchRequest, context: Context
    ) -> retrieve_pb2.SearchResponse:
        """The best messages for a question, or why there are none."""
        found = await search(wire.question(request), self._retrieval)
        return wire.search_response(
            found, explain=request.explain, with_signals=request.with_signals
        )

    async def ExpandGraph(  # noqa: N802
        self, request: retrieve_pb2.ExpandGraphRequest, context: Context
    ) -> retrieve_pb2.ExpandGraphResponse:
        """Neighbours of documents, judged."""
        found = await search(wire.expansion(request), self._retrieval)
        given = request.search
        result = wire.search_response(found, explain=given.explain, with_signals=given.with_signals)
        return retrieve_pb2.ExpandGraphResponse(result=result)

    async def ReadMessages(  # noqa: N802
        self, request: retrieve_pb2.ReadMessagesRequest, context: Context
    ) -> retrieve_pb2.ReadMessagesResponse:
        """Messages by id."""
        message_ids = [checked_text("message_ids", given) for given in request.message_ids]
        readable = checked_context(request.context)
        found = await read_messages(self._pool, readable, message_ids)
        return retrieve_pb2.ReadMessagesResponse(messages=wire.messages(found))

    async def ReadThread(  # noqa: N802
        self, request: retrieve_pb2.ReadThreadRequest, context: Context
    ) -> retrieve_pb2.ReadThreadResponse:
        """One thread."""
        message_id = checked_text("message_id", request.message_id)
        found = await read_thread(self._pool, checked_context(request.context), message_id)
        return retrieve_pb2.ReadThreadResponse(messages=wire.messages(found))

    async def ReadTimeline(  # noqa: N802
        self, request: retrieve_pb2.ReadTimelineRequest, context: Context
    ) -> retrieve_pb2.ReadTimelineResponse:
        """A page of messages in time order."""
        readable = checked_context(request.context)
        narrowing = override(filter_from_proto(request.filter), Filter())
        page = await read_timeline(self._pool, readable, narrowing, wire.page_request(request))
        return wire.page_response(page)
