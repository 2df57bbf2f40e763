"""The client's half of BuildDocuments: offers a manifest, sends what is asked for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from dataclasses import dataclass

from recall.ingest.v1 import documents_pb2, ingest_pb2_grpc
from services.manifest import Manifest, canonical, digest


@dataclass(frozen=True)
class DocumentBuild:
    """What to build where; an empty embedder leaves the choice to ingest."""

    workspace_id: str
    manifest: Manifest
    embedder: str = ""


async def send_documents(
    ingest: ingest_pb2_grpc.IngestServiceAsyncStub,
    build: DocumentBuild,
    read: Callable[[str], bytes],
    seconds: float,
) -> AsyncGenerator[documents_pb2.BuildDocumentsResponse, None]:
    """Everything that the service answers. Contents are read, by URI and in a thread, when they are
    asked for and after the caller has seen which. Raises what ``read`` and the stub raise."""
    asked: asyncio.Queue[str | None] = asyncio.Queue()

    async def requests() -> AsyncIterator[documents_pb2.BuildDocumentsRequest]:
        yield documents_pb2.BuildDocumentsRequest(header=_header(build))
        while (uri := await asked.get()) is not None:
            content = await asyncio.to_thread(read, uri)
            yield documents_pb2.BuildDocumentsRequest(
                object=documents_pb2.SourceObject(uri=uri, content=content)
            )

    async for reply in ingest.BuildDocuments(requests(), timeout=seconds):
        yield reply
        if reply.HasField("wanted"):
            for uri in reply.wanted.uris:
                asked.put_nowait(uri)
            asked.put_nowait(None)


def _header(build: DocumentBuild) -> documents_pb2.DocumentsHeader:
    stored = canonical(build.manifest)
    return documents_pb2.DocumentsHeader(
        workspace_id=build.workspace_id,
        collection=build.manifest.collection,
        embedder=build.embedder,
        manifest_json=stored,
        manifest_digest=digest(stored),
    )
