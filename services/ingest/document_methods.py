"""The RPCs of documents, as a part of IngestService."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import grpc

from recall.ingest.v1 import documents_pb2, ingest_pb2_grpc
from services.ingest import document_wire as wire
from services.ingest.build_documents import Report, build_documents
from services.ingest.erase_source import Erasure, erase_source
from services.ingest.generation_wire import generation
from services.ingest.list_generations import get_generation
from services.ingest.list_sources import list_sources
from services.ingest.resources import Resources
from services.runtime import call as calls
from services.runtime.callers import require_channels, require_workspace

Context = grpc.aio.ServicerContext[Any, Any]


class DocumentMethods(ingest_pb2_grpc.IngestServiceServicer):
    """Builds generations of documents, and forgets documents."""

    _resources: Resources

    async def BuildDocuments(  # noqa: N802
        self,
        request_iterator: AsyncIterator[documents_pb2.BuildDocumentsRequest],
        context: Context,
    ) -> AsyncIterator[documents_pb2.BuildDocumentsResponse]:
        """See the proto."""
        caller = calls.caller()
        header = await wire.header(request_iterator, caller.name)
        require_workspace(caller, header.workspace_id)
        require_channels(caller, [header.manifest.collection])
        contents = wire.contents(request_iterator)
        async with aclosing(build_documents(self._resources, header, contents)) as events:
            async for event in events:
                if isinstance(event, Report):
                    found = await get_generation(
                        self._resources, header.workspace_id, event.generation_id, caller
                    )
                    yield wire.report(event, generation(*found))
                else:
                    yield wire.response(event)

    async def EraseSource(  # noqa: N802
        self, request: documents_pb2.EraseSourceRequest, context: Context
    ) -> documents_pb2.EraseSourceResponse:
        """See the proto."""
        caller = calls.caller()
        require_workspace(caller, request.workspace_id)
        require_channels(caller, [request.collection])
        erasure = Erasure(request.workspace_id, request.collection, request.uri, caller.name)
        forgotten = await erase_source(self._resources, erasure)
        return documents_pb2.EraseSourceResponse(
            generation_ids=forgotten.generation_ids, chunks=forgotten.chunks
        )

    async def ListSources(  # noqa: N802
        self, request: documents_pb2.ListSourcesRequest, context: Context
    ) -> documents_pb2.ListSourcesResponse:
        """See the proto."""
        require_workspace(calls.caller(), request.workspace_id)
        require_channels(calls.caller(), [request.collection])
        found = await list_sources(self._resources, request.workspace_id, request.collection)
        sources = [documents_pb2.StoredSource(**vars(each)) for each in found.sources]
        return documents_pb2.ListSourcesResponse(generation_id=found.generation_id, sources=sources)
