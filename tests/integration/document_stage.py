"""Documents built over gRPC, and searched over gRPC, for tests of the two together."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from recall.corpus.v1 import corpus_pb2
from recall.ingest.v1 import documents_pb2
from services.ingest.embedding import fill_vectors
from services.ingest.resources import Resources
from services.manifest import Manifest, ManifestObject, canonical, digest
from tests.integration.ingest_fixtures import Ingest
from tests.integration.lifecycle import promote, validate

Request = documents_pb2.BuildDocumentsRequest


def uri_of(collection: str, path: str) -> str:
    """URI of a test document."""
    return f"file:///{collection}/{path}"


def manifest_of(collection: str, texts: Mapping[str, str]) -> Manifest:
    """The manifest of texts by path."""
    objects = []
    for path, text in texts.items():
        content = text.encode()
        sha256 = hashlib.sha256(content).hexdigest()
        objects.append(
            ManifestObject(
                uri_of(collection, path), path, sha256, "text/markdown", len(content), sha256
            )
        )
    return Manifest(collection, tuple(objects))


async def build(
    ingest: Ingest, collection: str, texts: Mapping[str, str]
) -> documents_pb2.DocumentsReport:
    """Build a collection in workspace W, sending all that is wanted."""
    by_uri = {uri_of(collection, path): text for path, text in texts.items()}
    wanted: list[str] = []
    stored = canonical(manifest_of(collection, texts))
    header = documents_pb2.DocumentsHeader(
        workspace_id="W",
        collection=collection,
        embedder="local",
        manifest_json=stored,
        manifest_digest=digest(stored),
    )
    call = ingest.ingest.BuildDocuments()
    await call.write(Request(header=header))
    report = documents_pb2.DocumentsReport()
    async for reply in call:
        if reply.HasField("wanted"):
            wanted.extend(reply.wanted.uris)
            for uri in wanted:
                content = by_uri[uri].encode()
                await call.write(
                    Request(object=documents_pb2.SourceObject(uri=uri, content=content))
                )
            await call.done_writing()
        elif reply.HasField("report"):
            report = reply.report
    return report


async def serve_documents(
    ingest: Ingest, resources: Resources, collection: str, texts: Mapping[str, str]
) -> documents_pb2.DocumentsReport:
    """Build, embed, validate and promote."""
    report = await build(ingest, collection, texts)
    generation_id = report.generation.generation_id
    while await fill_vectors(resources.pool, resources.embedders, "W", generation_id):
        pass
    await validate(ingest, generation_id)
    await promote(ingest, generation_id)
    return report


def document_reader(collection: str) -> corpus_pb2.QueryContext:
    """Somebody who may read one collection of workspace W."""
    return corpus_pb2.QueryContext(
        source=corpus_pb2.SOURCE_DOCUMENT, workspace_id="W", channel_ids=[collection]
    )
