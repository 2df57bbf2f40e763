"""A search reads one pinned generation, with the embedder that built it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import grpc
import psycopg
import pytest

from recall.corpus.v1 import corpus_pb2
from recall.error.v1 import error_pb2
from recall.retrieve.v1 import retrieve_pb2
from services.embedding import local
from services.runtime.errors import from_rpc_error
from tests.conftest import Serve
from tests.integration.retrieve_stage import (
    Stub,
    asked,
    ids,
    local_embedder,
    reader,
    refusal,
    retrieve_stage,
    seed_four_messages,
)
from tests.integration.seed import OPENAI_IDENTITY, Seed, at


@pytest.fixture
def seed(database_url: str) -> Iterator[Seed]:
    with psycopg.connect(database_url, autocommit=True) as connection:
        yield seed_four_messages(connection)


@pytest.fixture
async def stub(seed: Seed, database_url: str, serve: Serve) -> AsyncIterator[Stub]:
    await seed.embed(local_embedder())
    async with retrieve_stage(database_url, serve) as client:
        yield client


async def test_vectors_still_being_made_are_said(stub: Stub, seed: Seed) -> None:
    late = seed.message("slack:T1:C1:1.000001", "28P01 again", posted_at=at(9))
    found = await stub.Search(asked("28P01"))
    assert list(found.degraded) == ["dense_incomplete"]
    assert late in ids(found)
    [hit] = [hit for hit in found.hits if hit.message.message_id == late]
    assert not hit.HasField("cosine") and not hit.HasField("dense_rank")
    elsewhere = await stub.Search(asked("28P01", "C2"))
    assert list(elsewhere.degraded) == []


async def test_a_generation_stays_searchable_for_30_minutes_after_it_stopped_serving(
    stub: Stub, seed: Seed
) -> None:
    seed.generation("just-superseded", "ready", superseded_minutes_ago=29)
    seed.generation("long-superseded", "ready", superseded_minutes_ago=31)
    seed.generation("never-served", "ready")
    seed.generation("half-built", "building")

    def pinned(generation_id: str) -> retrieve_pb2.SearchRequest:
        return asked("postgres", pin=corpus_pb2.Pin(generation_id=generation_id))

    found = await stub.Search(pinned("just-superseded"))
    assert found.pin.generation_id == "just-superseded"
    assert not found.hits
    for generation_id in ("long-superseded", "never-served", "half-built", "unknown"):
        assert await refusal(stub.Search(pinned(generation_id))) == (
            grpc.StatusCode.NOT_FOUND,
            "GENERATION_NOT_FOUND",
        )


async def test_a_generation_that_does_not_serve_yet_is_searched_only_on_request(
    stub: Stub, seed: Seed
) -> None:
    states = ("building", "validating", "ready", "retired")
    for state in states:
        seed.generation(state, state)

    async def outcome(state: str) -> tuple[grpc.StatusCode, str] | str:
        pin = corpus_pb2.Pin(generation_id=state)
        request = asked("postgres", pin=pin, may_be_unserved=True)
        if state in ("validating", "ready"):
            return (await stub.Search(request)).pin.generation_id
        return await refusal(stub.Search(request))

    not_found = (grpc.StatusCode.NOT_FOUND, "GENERATION_NOT_FOUND")
    assert [await outcome(state) for state in states] == [
        *(not_found, "validating", "ready", not_found),
    ]


async def test_a_question_for_another_embedder_is_refused(stub: Stub) -> None:
    mine = await stub.ResolvePin(retrieve_pb2.ResolvePinRequest(context=reader("C1")))
    assert mine.pin.generation_id == "G1"
    assert mine.embedder_fingerprint == local.IDENTITY.fingerprint
    right = asked("postgres", expected_embedder_fingerprint=mine.embedder_fingerprint)
    assert (await stub.Search(right)).hits
    wrong = asked("postgres", expected_embedder_fingerprint=OPENAI_IDENTITY.fingerprint)
    assert await refusal(stub.Search(wrong)) == (
        grpc.StatusCode.FAILED_PRECONDITION,
        "EMBEDDER_MISMATCH",
    )


async def test_the_generations_embedder_is_needed_whatever_the_environment_says(
    stub: Stub, seed: Seed
) -> None:
    other = Seed(seed.connection, "T2", identity=OPENAI_IDENTITY).workspace()
    other.channel("C1", "ops")
    request = retrieve_pb2.SearchRequest(
        context=reader("C1", workspace_id="T2"), question="postgres"
    )
    with pytest.raises(grpc.RpcError) as raised:
        await stub.Search(request)
    error = from_rpc_error(raised.value)
    assert error.reason == error_pb2.ERROR_REASON_EMBEDDER_UNAVAILABLE
    assert "OPENAI_API_KEY" in error.message


async def test_a_workspace_without_a_serving_generation_says_so(stub: Stub, seed: Seed) -> None:
    seed.connection.execute("INSERT INTO workspaces (workspace_id, source) VALUES ('T3', 'slack')")
    for workspace_id, expected in (
        ("T3", (grpc.StatusCode.FAILED_PRECONDITION, "NO_ACTIVE_GENERATION")),
        ("T4", (grpc.StatusCode.NOT_FOUND, "WORKSPACE_NOT_FOUND")),
    ):
        context = reader("C1", workspace_id=workspace_id)
        search = retrieve_pb2.SearchRequest(context=context, question="postgres")
        assert await refusal(stub.Search(search)) == expected
        pin = retrieve_pb2.ResolvePinRequest(context=context)
        assert await refusal(stub.ResolvePin(pin)) == expected
