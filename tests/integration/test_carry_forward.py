"""Carrying documents forward is the same as building them from nothing, only less work."""

from __future__ import annotations

import random
from typing import Any

import pytest

from services.ingest.resources import Resources
from tests.integration.document_stage import build, serve_documents
from tests.integration.ingest_fixtures import Ingest, Rows

_CONTENT = {
    "sources": "source_uri, path, version_id, sha256, size, title, document_type, valid_from, "
    "valid_until, invalid_metadata, facts, depends_on, supersedes, relations, problems, "
    "first_indexed_at",
    "source_pieces": "message_id, source_uri, ordinal, channel_id, text, content_sha256",
    "chunks": "chunk_id, channel_id, thread_root_id, kind, text, text_sha256, token_count",
    "chunk_messages": "chunk_id, message_id, position",
    "chunk_terms": "chunk_id, channel_id, author_ids, posted_from, posted_until, terms",
    "vectors_384": "chunk_id, channel_id, author_ids, posted_from, posted_until, embedding::text",
    "supersessions": "source_uri, superseded_uri, is_ambiguous",
    "document_relations": "source_uri, relation, target_uri, confidence",
}


def content(rows: Rows, generation_id: str) -> dict[str, list[tuple[Any, ...]]]:
    """Everything that a generation holds, but for when and from where it came."""
    return {
        table: rows.all(
            f"SELECT {columns} FROM {table} WHERE generation_id = %s ORDER BY 1, 2, 3",
            generation_id,
        )
        for table, columns in _CONTENT.items()
    }


def corpus(chance: random.Random, count: int) -> dict[str, str]:
    words = [f"word{number}" for number in range(200)]

    def text(number: int) -> str:
        body = "\n\n".join(
            " ".join(chance.choices(words, k=chance.randint(1, 120)))
            for _ in range(chance.randint(1, 3))
        )
        head = chance.choice(
            (
                "",
                f"---\nsupersedes: note{(number + 1) % count}\n---\n",
                f"---\nvalid_until: 2027-01-31\ndepends_on: [note{(number + 3) % count}]\n---\n",
            )
        )
        return head + body

    return {f"team{number % 3}/note{number}.md": text(number) for number in range(count)}


def edited(chance: random.Random, texts: dict[str, str]) -> dict[str, str]:
    """Some documents changed, some gone, some moved, some new."""
    kept = dict(texts)
    for path in chance.sample(sorted(kept), 4):
        kept[path] += " changed"
    for path in chance.sample(sorted(kept), 2):
        del kept[path]
    moved = chance.choice(sorted(kept))
    kept[f"moved/{moved}"] = kept.pop(moved)
    return kept | {f"new/{number}.md": f"Brand new {number}" for number in range(3)}


@pytest.mark.parametrize("seed", range(4))
async def test_carrying_forward_equals_a_rebuild_from_nothing_byte_for_byte(
    ingest: Ingest, resources: Resources, rows: Rows, seed: int
) -> None:
    chance = random.Random(seed)
    first = corpus(chance, 20)
    await serve_documents(ingest, resources, "notes", first)
    second = edited(chance, first)
    carried = await serve_documents(ingest, resources, "notes", second)
    assert 0 < carried.counts.carried < carried.counts.sources
    assert carried.counts.carried + carried.counts.read == carried.counts.sources
    # Nothing to carry from, and nothing cached: everything is read and embedded again.
    rows.execute("UPDATE generations SET pipeline_fingerprint = 'another'")
    rows.execute("DELETE FROM embedding_cache")
    anew = await serve_documents(ingest, resources, "notes", second)
    assert (anew.counts.carried, anew.counts.read) == (0, len(second))
    before = content(rows, carried.generation.generation_id)
    assert before["vectors_384"]
    assert before == content(rows, anew.generation.generation_id)


async def test_an_unchanged_collection_is_carried_whole_and_keeps_its_dates(
    ingest: Ingest, resources: Resources, rows: Rows
) -> None:
    texts = corpus(random.Random(1), 6)
    first = await serve_documents(ingest, resources, "notes", texts)
    again = await build(ingest, "notes", texts)
    assert (again.counts.carried, again.counts.read) == (6, 0)
    assert again.counts.chunks_without_vector == 0
    dates = "SELECT source_uri, first_indexed_at, indexed_at FROM sources WHERE generation_id = %s"
    old, new = (
        sorted(rows.all(dates, report.generation.generation_id)) for report in (first, again)
    )
    assert old == new
    origin = rows.all(
        "SELECT DISTINCT carried_from FROM sources WHERE generation_id = %s",
        again.generation.generation_id,
    )
    assert origin == [(first.generation.generation_id,)]


async def test_a_build_whose_vectors_are_all_cached_waits_for_none(
    ingest: Ingest, resources: Resources, rows: Rows
) -> None:
    texts = corpus(random.Random(2), 6)
    await serve_documents(ingest, resources, "notes", texts)
    rows.execute("UPDATE generations SET pipeline_fingerprint = 'another'")
    again = await build(ingest, "notes", texts)
    assert (again.counts.read, again.counts.chunks_without_vector) == (6, 0)
    assert again.counts.chunks >= 6


async def test_vectors_of_another_model_of_the_same_width_are_never_carried(
    ingest: Ingest, resources: Resources, rows: Rows
) -> None:
    texts = corpus(random.Random(3), 4)
    first = await serve_documents(ingest, resources, "notes", texts)
    # As if the collection had been built with another model.
    rows.execute("INSERT INTO embedders VALUES ('other', 'local', 'onnx', 'other', '1', 384)")
    rows.execute("UPDATE embedding_cache SET embedder_fingerprint = 'other'")
    rows.execute(
        "UPDATE generations SET embedder_fingerprint = 'other', pipeline_fingerprint = 'other'"
    )
    again = await build(ingest, "notes", texts)
    assert again.counts.carried == 0
    assert again.counts.chunks_without_vector == again.counts.chunks == first.counts.chunks
