"""One build of a collection at a time; what is erased stays away; what is wrong is told."""

from __future__ import annotations

import pytest

from recall.corpus.v1 import corpus_pb2
from recall.error.v1 import error_pb2
from recall.ingest.v1 import documents_pb2
from recall.retrieve.v1 import retrieve_pb2
from services.ingest.resources import Resources
from services.manifest import canonical, digest
from tests.conftest import Serve
from tests.integration.document_stage import (
    Request,
    build,
    document_reader,
    manifest_of,
    serve_documents,
    uri_of,
)
from tests.integration.ingest_fixtures import Ingest, Rows, call_fails
from tests.integration.lifecycle import audited, roll_back, states
from tests.integration.retrieve_stage import retrieve_stage
from tests.waiting import until

TEXTS = {"travel.md": "Book trains early.", "food.md": "Soup is at noon."}


async def erase(ingest: Ingest, path: str) -> documents_pb2.EraseSourceResponse:
    request = documents_pb2.EraseSourceRequest(
        workspace_id="W", collection="notes", uri=uri_of("notes", path)
    )
    return await ingest.ingest.EraseSource(request)


def opening(collection: str, texts: dict[str, str]) -> Request:
    stored = canonical(manifest_of(collection, texts))
    return Request(
        header=documents_pb2.DocumentsHeader(
            workspace_id="W",
            collection=collection,
            embedder="local",
            manifest_json=stored,
            manifest_digest=digest(stored),
        )
    )


async def test_a_second_build_of_a_collection_is_refused_and_another_collection_is_not(
    ingest: Ingest, rows: Rows
) -> None:
    first = ingest.ingest.BuildDocuments()
    await first.write(opening("notes", TEXTS))
    await first.read()
    with call_fails() as errors:
        await build(ingest, "notes", TEXTS)
    assert errors[0].reason == error_pb2.ERROR_REASON_CONCURRENT_CHANGE
    await build(ingest, "other", TEXTS)
    first.cancel()


async def test_a_build_whose_client_went_away_is_failed_and_holds_nobody_up(
    ingest: Ingest, rows: Rows
) -> None:
    first = ingest.ingest.BuildDocuments()
    await first.write(opening("notes", TEXTS))
    await first.read()
    first.cancel()
    await until(lambda: "failed" in states(rows).values())
    report = await build(ingest, "notes", TEXTS)
    assert report.counts.read == 2


async def test_an_erased_document_is_gone_from_every_generation_and_never_comes_back(
    ingest: Ingest, resources: Resources, rows: Rows
) -> None:
    older = await serve_documents(ingest, resources, "notes", TEXTS)
    newer = await serve_documents(ingest, resources, "notes", TEXTS | {"new.md": "Tea at four."})
    generations = sorted(report.generation.generation_id for report in (older, newer))
    erased = await erase(ingest, "food.md")
    assert (sorted(erased.generation_ids), erased.chunks) == (generations, 2)
    assert audited(rows)[-1][0] == "source_erased"
    await roll_back(ingest, "notes")
    again = await build(ingest, "notes", TEXTS)
    assert [problem.message for problem in again.problems] == ["was erased and is not taken again"]
    left = rows.all("SELECT DISTINCT path FROM sources ORDER BY 1")
    assert left == [("new.md",), ("travel.md",)]
    for table in ("source_pieces", "chunks", "chunk_terms", "vectors_384"):
        assert rows.one(f"SELECT count(*) FROM {table}") == 4
    assert (await erase(ingest, "food.md")).chunks == 0


async def test_an_erasure_during_a_build_wins(ingest: Ingest, rows: Rows) -> None:
    call = ingest.ingest.BuildDocuments()
    await call.write(opening("notes", TEXTS))
    await call.read()
    await erase(ingest, "food.md")
    for path, text in TEXTS.items():
        content = text.encode()
        sent = documents_pb2.SourceObject(uri=uri_of("notes", path), content=content)
        await call.write(Request(object=sent))
    await call.done_writing()
    report = [event async for event in call][-1].report
    assert report.counts.chunks == 1
    assert rows.all("SELECT path FROM sources") == [("travel.md",)]


async def test_an_erasure_gives_the_corpus_another_fingerprint(
    ingest: Ingest, resources: Resources, rows: Rows
) -> None:
    report = await serve_documents(ingest, resources, "notes", TEXTS)
    generation_id = report.generation.generation_id
    question = "SELECT corpus_fingerprint FROM generations WHERE generation_id = %s"
    before = rows.one(question, generation_id)
    await erase(ingest, "food.md")
    assert rows.one(question, generation_id) != before


async def test_what_authors_should_mend_is_told_with_document_and_line(
    ingest: Ingest, rows: Rows
) -> None:
    texts = {
        "x/note.md": "one",
        "y/note.md": "two",
        "bad.md": "---\ntype: a\nvalid_until: soon\n---\ntext",
        "links.md": "---\nsupersedes:\n  - note\n  - gone\nowner: me\n---\ntext",
        "empty.md": "\n",
    }
    report = await build(ingest, "notes", texts)
    told = [(each.uri.rsplit("/", 1)[1], each.line) for each in report.problems]
    assert told == [
        ("bad.md", 3),
        ("empty.md", 0),
        ("links.md", 3),
        ("links.md", 4),
        ("links.md", 5),
    ]
    rows.execute("UPDATE generations SET state = 'active', promoted_at = now()")
    again = await build(ingest, "notes", texts)
    assert again.counts.carried == len(texts)
    assert list(again.problems) == list(report.problems)
    invalid = rows.one("SELECT DISTINCT invalid_metadata FROM sources WHERE path = 'bad.md'")
    assert "no day" in invalid


async def test_a_document_is_found_under_its_rights_with_its_provenance(
    ingest: Ingest, resources: Resources, database_url: str, serve: Serve
) -> None:
    await serve_documents(ingest, resources, "notes", TEXTS)
    await serve_documents(ingest, resources, "secret", {"soup.md": "The soup is poisoned."})
    async with retrieve_stage(database_url, serve) as stub:
        request = retrieve_pb2.SearchRequest(
            context=document_reader("notes"),
            question="When is soup?",
            trust_mode=corpus_pb2.TRUST_MODE_RELAXED,
        )
        found = await stub.Search(request)
    assert found.hits[0].message.text == "Soup is at noon."
    assert found.hits[0].provenance.source_uri == uri_of("notes", "food.md")
    assert found.hits[0].provenance.generation_id == found.pin.generation_id
    assert all(hit.message.channel_id == "notes" for hit in found.hits)


@pytest.mark.parametrize("collection", ["", "Has Space"])
async def test_a_collection_that_can_not_be_named_is_refused(
    ingest: Ingest, collection: str
) -> None:
    with call_fails() as errors:
        await build(ingest, collection, TEXTS)
    assert "collection" in errors[0].message
