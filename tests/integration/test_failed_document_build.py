"""A build of documents that breaks fails with its reason, leaves nothing, and touches nothing."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator

import pytest

from recall.ingest.v1 import documents_pb2, generations_pb2
from services.manifest import Manifest, ManifestObject, canonical, digest
from tests.integration.ingest_fixtures import Ingest, Rows, call_fails
from tests.integration.lifecycle import audited, promote, states, validate

Request = documents_pb2.BuildDocumentsRequest

TEXTS = {"travel.md": "Book trains early.", "food.md": "Soup is at noon."}


def uri_of(path: str) -> str:
    return f"file:///handbook/{path}"


def manifest() -> bytes:
    objects = []
    for path, text in TEXTS.items():
        sha256, size = hashlib.sha256(text.encode()).hexdigest(), len(text.encode())
        objects.append(ManifestObject(uri_of(path), path, sha256, "text/markdown", size, sha256))
    return canonical(Manifest("handbook", tuple(objects)))


async def build(ingest: Ingest, contents: dict[str, str]) -> documents_pb2.DocumentsReport:
    """Build the manifest's collection of what is sent, whatever is wanted."""

    async def requests() -> AsyncIterator[Request]:
        stored = manifest()
        header = documents_pb2.DocumentsHeader(
            workspace_id="W",
            collection="handbook",
            embedder="local",
            manifest_json=stored,
            manifest_digest=digest(stored),
        )
        yield Request(header=header)
        for path, text in contents.items():
            sent = documents_pb2.SourceObject(uri=uri_of(path), content=text.encode())
            yield Request(object=sent)

    events = [event async for event in ingest.ingest.BuildDocuments(requests())]
    return events[-1].report


async def test_what_was_erased_before_is_left_out_and_the_rest_is_whole(
    ingest: Ingest, rows: Rows
) -> None:
    await build(ingest, TEXTS)
    erase = documents_pb2.EraseSourceRequest(
        workspace_id="W", collection="handbook", uri=uri_of("food.md")
    )
    await ingest.ingest.EraseSource(erase)
    report = await build(ingest, {"travel.md": TEXTS["travel.md"]})
    assert [problem.uri for problem in report.problems] == [uri_of("food.md")]
    built = report.generation.generation_id
    rows.embed(built, 384)
    assert (await validate(ingest, built)).state == generations_pb2.GENERATION_STATE_READY
    assert rows.all("SELECT path FROM sources WHERE generation_id = %s", built) == [("travel.md",)]


@pytest.mark.parametrize(
    ("contents", "reason"),
    [
        ({**TEXTS, "food.md": "Soup is at one."}, "not what the manifest says"),
        ({"travel.md": TEXTS["travel.md"]}, "1 objects that were asked for never came"),
        ({**TEXTS, "other.md": "?", "food.md": "!"}, "not asked for"),
    ],
)
async def test_a_build_that_breaks_leaves_the_serving_one_and_no_rows(
    ingest: Ingest, rows: Rows, contents: dict[str, str], reason: str
) -> None:
    serving = (await build(ingest, TEXTS)).generation.generation_id
    rows.embed(serving, 384)
    await validate(ingest, serving)
    await promote(ingest, serving)
    rows.execute("DELETE FROM embedding_cache")
    # Another pipeline, so that everything is asked for again.
    rows.execute("UPDATE generations SET pipeline_fingerprint = 'another'")
    order = sorted(contents, key=lambda path: path in TEXTS)
    with call_fails() as errors:
        await build(ingest, {path: contents[path] for path in order})
    assert reason in errors[0].message
    (failed,) = (name for name, state in states(rows).items() if state == "failed")
    assert states(rows)[serving] == "active"
    told = rows.one("SELECT failure_reason FROM generations WHERE generation_id = %s", failed)
    assert reason in told
    assert audited(rows)[-1] == ("generation_failed", failed)
    for table in ("sources", "source_pieces", "chunks"):
        kept = rows.all(f"SELECT DISTINCT generation_id FROM {table}")
        assert kept == [(serving,)], table
