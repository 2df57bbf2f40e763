"""Rules of the OpenAI embedder: the real client against a server that speaks the wire format."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import grpc
import numpy as np
import pytest

from recall.error.v1 import error_pb2
from services.embedding.identity import Skipped, Vector
from services.embedding.openai_embedder import OpenAIEmbedder
from services.runtime.call import Call
from services.runtime.errors import CallError
from services.runtime.interceptors import call_in_progress
from tests.fakes.openai_embeddings import vector
from tests.fakes.openai_server import EMBEDDINGS, OpenAIServer
from tests.fakes.openai_steps import (
    HttpError,
    RawBody,
    Slow,
    Step,
    Vectors,
    rate_limited,
    unauthorized,
)

# The client's own waiting time between tries is part of the header, so that tests are quick.
AGAIN = {"retry-after-ms": "1"}
TRIES = 4


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with OpenAIServer() as running:
        yield running


@asynccontextmanager
async def embedder_for(server: OpenAIServer) -> AsyncIterator[OpenAIEmbedder]:
    embedder = OpenAIEmbedder("key-1", server.base_url)
    yield embedder
    await embedder.aclose()


async def passages(server: OpenAIServer, texts: list[str]) -> list[Vector | Skipped]:
    async with embedder_for(server) as embedder:
        return await embedder.embed_passages(texts)


def assert_is_vector_of(result: Vector | Skipped, text: str) -> None:
    assert not isinstance(result, Skipped)
    assert np.allclose(result, vector(text), atol=1e-6)


async def test_each_text_gets_its_own_vector(server: OpenAIServer) -> None:
    texts = [f"message {number}" for number in range(5)]
    for text, result in zip(texts, await passages(server, texts), strict=True):
        assert_is_vector_of(result, text)


async def test_a_reply_out_of_order_is_read_by_its_indexes(server: OpenAIServer) -> None:
    server.embed(Vectors(reversed_order=True))
    results = await passages(server, ["a", "b", "c"])
    assert_is_vector_of(results[0], "a")
    assert_is_vector_of(results[2], "c")


async def test_empty_and_too_long_texts_fail_no_other_of_thirty_two(server: OpenAIServer) -> None:
    texts = [f"message {number}" for number in range(32)]
    texts[5], texts[9] = "", "long text " * 10_000
    results = await passages(server, texts)
    assert isinstance(results[5], Skipped)
    assert_is_vector_of(results[9], texts[9][:8_191])
    for number in set(range(32)) - {5, 9}:
        assert_is_vector_of(results[number], texts[number])


@pytest.mark.parametrize(
    "fault",
    [
        Vectors(missing=1),
        Vectors(width=8),
        RawBody(),
        RawBody("{}", content_type="application/json"),
    ],
    ids=["a vector less", "another width", "a page", "another shape"],
)
async def test_a_reply_that_does_not_match_is_an_outage_and_never_misaligned(
    server: OpenAIServer, fault: Step
) -> None:
    server.embed(fault)
    with pytest.raises(CallError) as caught:
        await passages(server, [f"message {number}" for number in range(32)])
    assert caught.value.code is grpc.StatusCode.UNAVAILABLE
    assert caught.value.reason == error_pb2.ERROR_REASON_EMBEDDER_UNAVAILABLE


async def test_refused_texts_are_skipped_alone(server: OpenAIServer) -> None:
    server.refused_word = "poison"
    texts = ["a", "b", "poison 1", "c", "d", "e", "poison 2"]
    results = await passages(server, texts)
    for text, result in zip(texts, results, strict=True):
        if "poison" in text:
            assert isinstance(result, Skipped) and "refuses" in result.reason
        else:
            assert_is_vector_of(result, text)


async def test_refused_texts_without_any_other_are_skipped_by_a_working_model(
    server: OpenAIServer,
) -> None:
    server.refused_word = "poison"
    results = await passages(server, ["poison 1", "poison 2"])
    assert all(isinstance(result, Skipped) for result in results)


async def test_a_model_that_refuses_everything_is_an_outage_and_skips_nothing(
    server: OpenAIServer,
) -> None:
    server.embed(*[HttpError(400)] * 10)
    with pytest.raises(CallError) as caught:
        await passages(server, ["a", "b"])
    assert caught.value.code is grpc.StatusCode.UNAVAILABLE


async def test_many_and_large_texts_keep_to_the_limits_of_a_request(server: OpenAIServer) -> None:
    texts = [f"message {number}" for number in range(2_100)] + ["word " * 1_600] * 50
    results = await passages(server, texts)
    assert len(server.requests_to(EMBEDDINGS)) > 1
    assert_is_vector_of(results[2_099], texts[2_099])
    assert_is_vector_of(results[-1], texts[-1])


@pytest.mark.parametrize("status", [408, 409, 429, 500, 503])
async def test_a_passing_failure_is_tried_again(server: OpenAIServer, status: int) -> None:
    server.embed(HttpError(status, headers=AGAIN))
    assert_is_vector_of((await passages(server, ["a"]))[0], "a")


@pytest.mark.parametrize(
    ("steps", "code", "remedy"),
    [
        (
            [HttpError(503, headers=AGAIN)] * TRIES,
            grpc.StatusCode.UNAVAILABLE,
            "can not be reached",
        ),
        ([rate_limited(1)] * TRIES, grpc.StatusCode.UNAVAILABLE, "can not be reached"),
        ([unauthorized()], grpc.StatusCode.FAILED_PRECONDITION, "OPENAI_API_KEY"),
        ([HttpError(403)], grpc.StatusCode.FAILED_PRECONDITION, "OPENAI_API_KEY"),
        ([HttpError(404)], grpc.StatusCode.FAILED_PRECONDITION, "OPENAI_BASE_URL"),
        (
            [HttpError(429, "insufficient_quota", "Used up.", AGAIN)] * TRIES,
            grpc.StatusCode.FAILED_PRECONDITION,
            "quota",
        ),
    ],
    ids=["unavailable", "rate limit", "key", "forbidden", "model", "quota"],
)
async def test_a_lasting_failure_says_what_to_do(
    server: OpenAIServer, steps: list[Step], code: grpc.StatusCode, remedy: str
) -> None:
    server.embed(*steps)
    with pytest.raises(CallError, match=remedy) as caught:
        await passages(server, ["a"])
    assert caught.value.code is code
    assert caught.value.reason == error_pb2.ERROR_REASON_EMBEDDER_UNAVAILABLE


async def test_a_long_wait_that_the_server_asks_for_is_passed_on(server: OpenAIServer) -> None:
    server.embed(HttpError(429, "rate_limit_exceeded", headers={"retry-after": "200"}))
    with pytest.raises(CallError) as caught:
        await passages(server, ["a"])
    assert caught.value.retry_after_seconds == 200


async def test_a_server_that_is_not_there_is_an_outage() -> None:
    embedder = OpenAIEmbedder("key-1", "http://127.0.0.1:9/v1")
    with pytest.raises(CallError) as caught:
        await embedder.embed_question("why?")
    assert caught.value.code is grpc.StatusCode.UNAVAILABLE
    await embedder.aclose()


async def test_a_question_gets_the_vector_of_its_text(server: OpenAIServer) -> None:
    async with embedder_for(server) as embedder:
        assert_is_vector_of(await embedder.embed_question("why?"), "why?")


async def test_a_question_that_is_empty_or_refused_is_the_asker_s_to_mend(
    server: OpenAIServer,
) -> None:
    server.refused_word = "poison"
    async with embedder_for(server) as embedder:
        for question in ("", "poison"):
            with pytest.raises(CallError) as caught:
                await embedder.embed_question(question)
            assert caught.value.code is grpc.StatusCode.INVALID_ARGUMENT


async def test_a_question_ends_with_its_deadline(server: OpenAIServer) -> None:
    server.embed(*[Slow(30.0, Vectors())] * 3)
    async with embedder_for(server) as embedder:
        call = Call("r", None, time.monotonic() + 0.3)
        with call_in_progress(call), pytest.raises(CallError) as caught:
            await embedder.embed_question("why?")
    assert caught.value.code is grpc.StatusCode.UNAVAILABLE


async def test_the_key_and_the_model_are_sent(server: OpenAIServer) -> None:
    await passages(server, ["a"])
    request = server.requests_to(EMBEDDINGS)[0]
    assert request.headers["authorization"] == "Bearer key-1"
    assert request.body["model"] == "text-embedding-3-small"
    assert request.body["encoding_format"] == "base64"
