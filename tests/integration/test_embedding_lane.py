"""Rules of the embedding lane: the real queue tables, the local model, OpenAI's wire format."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

import grpc
import numpy as np
import psycopg
import pytest

from services.embedding import local, openai_embedder
from services.embedding.identity import Skipped, Vector
from services.embedding.registry import Embedders, EmbeddingSettings
from services.ingest import queue
from services.ingest.embedding import BATCH_CHUNKS, SLICE_CHUNKS, fill_vectors
from services.runtime import db
from services.runtime.errors import CallError
from tests.chunk_rows import WORKSPACE, ChunkRows, change_text
from tests.fakes import openai_embeddings
from tests.fakes.openai_server import EMBEDDINGS, OpenAIServer
from tests.fakes.openai_steps import HttpError, Slow, Vectors
from tests.waiting import until

LOCAL, OPENAI = local.IDENTITY, openai_embedder.IDENTITY
TEXTS = {"c1": "the worker restarts at night", "c2": "lunch today?", "c3": "it runs out of memory"}


@pytest.fixture
def rows(database_url: str) -> ChunkRows:
    return ChunkRows(database_url)


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with OpenAIServer() as running:
        yield running


@pytest.fixture
async def embedders(server: OpenAIServer) -> AsyncIterator[Embedders]:
    made = Embedders(EmbeddingSettings("key-1", server.base_url, local_threads=2))
    yield made
    await made.aclose()


async def local_vector(embedders: Embedders, text: str) -> Vector:
    result = (await embedders.by_name("local").embed_passages([text]))[0]
    assert not isinstance(result, Skipped)
    return result


def same(found: Vector | None, expected: Vector) -> bool:
    return found is not None and bool(np.allclose(found, expected, atol=1e-5))


async def test_every_chunk_of_the_generation_gets_the_vector_of_its_text(
    rows: ChunkRows, ingest_pool: db.Pool, embedders: Embedders
) -> None:
    rows.add_generation(LOCAL, "g1")
    rows.add_chunks(384, "g1", TEXTS)
    assert await fill_vectors(ingest_pool, embedders, WORKSPACE, "g1") == 3
    found = rows.vectors(384, "g1")
    for chunk_id, text in TEXTS.items():
        assert same(found[chunk_id], await local_vector(embedders, text))


async def test_another_generation_and_another_workspace_stay_as_they_are(
    rows: ChunkRows, ingest_pool: db.Pool, embedders: Embedders
) -> None:
    rows.add_generation(LOCAL, "g1")
    rows.add_generation(LOCAL, "g2")
    rows.add_generation(LOCAL, "g3", "other")
    for generation_id, workspace_id in (("g1", WORKSPACE), ("g2", WORKSPACE), ("g3", "other")):
        rows.add_chunks(384, generation_id, {"c1": "a text"}, workspace_id)
    await fill_vectors(ingest_pool, embedders, WORKSPACE, "g1")
    assert rows.vectors(384, "g2") == {"c1": None}
    assert rows.vectors(384, "g3") == {"c1": None}


async def test_more_chunks_than_a_batch_are_all_filled(
    rows: ChunkRows, ingest_pool: db.Pool, embedders: Embedders
) -> None:
    rows.add_generation(OPENAI, "g1")
    texts = {f"c{number}": f"message {number}" for number in range(2 * BATCH_CHUNKS + 5)}
    rows.add_chunks(1536, "g1", texts)
    assert await fill_vectors(ingest_pool, embedders, WORKSPACE, "g1") == len(texts)
    found = rows.vectors(1536, "g1")
    for chunk_id, text in texts.items():
        assert same(found[chunk_id], openai_embeddings.vector(text))


async def test_a_large_generation_asks_for_its_rest_behind_other_jobs(
    rows: ChunkRows, ingest_pool: db.Pool, queue_pool: db.Pool, embedders: Embedders
) -> None:
    rows.add_generation(OPENAI, "g1")
    rows.add_chunks(1536, "g1", {f"c{number}": "one text" for number in range(SLICE_CHUNKS + 1)})
    assert await fill_vectors(ingest_pool, embedders, WORKSPACE, "g1") == SLICE_CHUNKS
    (rest,) = await queue.claim(queue_pool)
    assert rest is not None and rest.payload == {"generation_id": "g1"}
    assert await fill_vectors(ingest_pool, embedders, WORKSPACE, "g1") == 1
    await queue.complete(queue_pool, rest)
    assert await queue.claim(queue_pool) == []


async def test_a_second_run_finds_nothing_to_do(
    rows: ChunkRows, ingest_pool: db.Pool, embedders: Embedders
) -> None:
    rows.add_generation(LOCAL, "g1")
    rows.add_chunks(384, "g1", {**TEXTS, "c4": " "})
    assert await fill_vectors(ingest_pool, embedders, WORKSPACE, "g1") == 4
    assert await fill_vectors(ingest_pool, embedders, WORKSPACE, "g1") == 0


async def test_a_cached_vector_is_used_without_any_model(
    rows: ChunkRows, ingest_pool: db.Pool
) -> None:
    rows.add_generation(OPENAI, "g1")
    rows.add_chunks(1536, "g1", {"c1": "a text"})
    vector = openai_embeddings.vector("something else")
    rows.put_in_cache(OPENAI, "a text", vector)
    assert await fill_vectors(ingest_pool, Embedders(EmbeddingSettings()), WORKSPACE, "g1") == 1
    assert same(rows.vectors(1536, "g1")["c1"], vector)


async def test_a_text_is_embedded_once_for_all_generations_of_its_embedder(
    rows: ChunkRows, ingest_pool: db.Pool, embedders: Embedders
) -> None:
    for generation_id in ("g1", "g2"):
        rows.add_generation(OPENAI, generation_id)
        rows.add_chunks(1536, generation_id, {"c1": "a text", "c2": "a text"})
    await fill_vectors(ingest_pool, embedders, WORKSPACE, "g1")
    # Without a key the second generation can only be filled from the cache.
    assert await fill_vectors(ingest_pool, Embedders(EmbeddingSettings()), WORKSPACE, "g2") == 2


async def test_an_empty_chunk_is_skipped_with_a_reason_and_not_cached(
    rows: ChunkRows, ingest_pool: db.Pool, embedders: Embedders
) -> None:
    rows.add_generation(LOCAL, "g1")
    rows.add_chunks(384, "g1", {**TEXTS, "c0": " \n"})
    await fill_vectors(ingest_pool, embedders, WORKSPACE, "g1")
    assert rows.skipped(384, "g1") == {"c0": "the text is empty"}
    assert rows.cached_texts([*TEXTS.values(), " \n"]) == set(TEXTS.values())


async def test_a_chunk_that_the_model_refuses_fails_no_other(
    rows: ChunkRows, ingest_pool: db.Pool, embedders: Embedders, server: OpenAIServer
) -> None:
    server.refused_word = "poison"
    rows.add_generation(OPENAI, "g1")
    rows.add_chunks(1536, "g1", {**TEXTS, "c0": "poison"})
    await fill_vectors(ingest_pool, embedders, WORKSPACE, "g1")
    assert set(rows.skipped(1536, "g1")) == {"c0"}
    assert same(rows.vectors(1536, "g1")["c3"], openai_embeddings.vector(TEXTS["c3"]))


async def test_a_text_that_changed_while_it_was_embedded_never_keeps_the_old_vector(
    rows: ChunkRows, ingest_pool: db.Pool, embedders: Embedders, server: OpenAIServer
) -> None:
    rows.add_generation(OPENAI, "g1")
    rows.add_chunks(1536, "g1", TEXTS)
    server.embed(Slow(0.5, Vectors()))
    lane = asyncio.create_task(fill_vectors(ingest_pool, embedders, WORKSPACE, "g1"))
    await until(lambda: bool(server.requests_to(EMBEDDINGS)))
    rows.change_text(1536, "g1", "c1", "a new text")
    await lane
    assert same(rows.vectors(1536, "g1")["c1"], openai_embeddings.vector("a new text"))
    assert same(rows.vectors(1536, "g1")["c2"], openai_embeddings.vector(TEXTS["c2"]))
    assert rows.cached_texts([TEXTS["c1"], "a new text"]) == {"a new text"}


async def test_a_chunk_that_an_edit_holds_is_filled_after_the_edit(
    rows: ChunkRows, ingest_pool: db.Pool, embedders: Embedders, database_url: str
) -> None:
    rows.add_generation(LOCAL, "g1")
    rows.add_chunks(384, "g1", TEXTS)
    with psycopg.connect(database_url) as edit:
        change_text(edit, (384, "g1", "c1"), "a new text")
        lane = asyncio.create_task(fill_vectors(ingest_pool, embedders, WORKSPACE, "g1"))
        await until(lambda: rows.vectors(384, "g1")["c3"] is not None)
        assert rows.vectors(384, "g1")["c1"] is None
        edit.commit()
        await lane
    assert same(rows.vectors(384, "g1")["c1"], await local_vector(embedders, "a new text"))
    assert rows.cached_texts([TEXTS["c1"]]) == set()


async def test_a_deleted_chunk_leaves_no_vector_of_its_text_behind(
    rows: ChunkRows, ingest_pool: db.Pool, embedders: Embedders, server: OpenAIServer
) -> None:
    rows.add_generation(OPENAI, "g1")
    rows.add_chunks(1536, "g1", TEXTS)
    server.embed(Slow(0.5, Vectors()))
    lane = asyncio.create_task(fill_vectors(ingest_pool, embedders, WORKSPACE, "g1"))
    await until(lambda: bool(server.requests_to(EMBEDDINGS)))
    async with db.writing(ingest_pool, WORKSPACE) as connection:
        await connection.execute("DELETE FROM chunks WHERE chunk_id = 'c1'")
    await lane
    assert set(rows.vectors(1536, "g1")) == {"c2", "c3"}
    assert rows.cached_texts([TEXTS["c1"]]) == set()


async def test_an_outage_keeps_what_was_filled_and_is_unavailable(
    rows: ChunkRows, ingest_pool: db.Pool, embedders: Embedders, server: OpenAIServer
) -> None:
    rows.add_generation(OPENAI, "g1")
    texts = {f"c{number:03}": f"message {number}" for number in range(BATCH_CHUNKS + 1)}
    rows.add_chunks(1536, "g1", texts)
    server.embed(Vectors(), *[HttpError(503, headers={"retry-after-ms": "1"})] * 4)
    with pytest.raises(CallError) as caught:
        await fill_vectors(ingest_pool, embedders, WORKSPACE, "g1")
    assert caught.value.code is grpc.StatusCode.UNAVAILABLE
    missing = [key for key, vector in rows.vectors(1536, "g1").items() if vector is None]
    assert missing == [f"c{BATCH_CHUNKS:03}"]
    assert rows.skipped(1536, "g1") == {}


async def test_a_generation_that_is_gone_has_nothing_to_fill(
    ingest_pool: db.Pool, embedders: Embedders
) -> None:
    assert await fill_vectors(ingest_pool, embedders, WORKSPACE, "gone") == 0
