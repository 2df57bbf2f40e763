"""Documents between the contract's messages and the use cases' values."""

from __future__ import annotations

from collections.abc import AsyncIterator

from recall.ingest.v1 import documents_pb2, generations_pb2
from services.ingest.build_documents import Counts, Header, Report, Wanted
from services.ingest.document_contents import Content
from services.ingest.import_target import MAX_WORKSPACE_CHARACTERS
from services.manifest import canonical, digest, parse
from services.runtime.errors import invalid


async def header(
    requests: AsyncIterator[documents_pb2.BuildDocumentsRequest], actor: str
) -> Header:
    """The header that opens a build. Raises CallError INVALID_ARGUMENT."""
    first = await anext(aiter(requests), None)
    if first is None or not first.HasField("header"):
        raise invalid("header", "must come first")
    given = first.header
    if not 0 < len(given.workspace_id) <= MAX_WORKSPACE_CHARACTERS:
        raise invalid(
            "header.workspace_id", f"must have 1 to {MAX_WORKSPACE_CHARACTERS} characters"
        )
    manifest = parse(given.manifest_json)
    if manifest.collection != given.collection:
        raise invalid("header.collection", f"is not the manifest's, {manifest.collection!r}")
    if digest(canonical(manifest)) != given.manifest_digest:
        raise invalid("header.manifest_digest", "is not the digest of the canonical manifest")
    return Header(given.workspace_id, manifest, given.embedder, actor)


async def contents(
    requests: AsyncIterator[documents_pb2.BuildDocumentsRequest],
) -> AsyncIterator[Content]:
    """The objects that follow."""
    async for request in requests:
        if not request.HasField("object"):
            raise invalid("object", "must follow the header, and nothing else")
        yield request.object.uri, request.object.content


def response(event: Wanted | Counts) -> documents_pb2.BuildDocumentsResponse:
    """What is wanted, or progress."""
    if isinstance(event, Wanted):
        wanted = documents_pb2.WantedObjects(uris=event.uris)
        return documents_pb2.BuildDocumentsResponse(wanted=wanted)
    return documents_pb2.BuildDocumentsResponse(progress=_counts(event))


def report(
    event: Report, generation: generations_pb2.Generation
) -> documents_pb2.BuildDocumentsResponse:
    """The end of a build."""
    problems = [
        documents_pb2.DocumentProblem(uri=fault.uri, line=fault.line, message=fault.message)
        for fault in event.faults
    ]
    return documents_pb2.BuildDocumentsResponse(
        report=documents_pb2.DocumentsReport(
            generation=generation, counts=_counts(event.counts), problems=problems
        )
    )


def _counts(counts: Counts) -> documents_pb2.DocumentCounts:
    return documents_pb2.DocumentCounts(
        sources=counts.sources,
        carried=counts.carried,
        read=counts.read,
        chunks=counts.chunks,
        chunks_without_vector=counts.without_vector,
    )
