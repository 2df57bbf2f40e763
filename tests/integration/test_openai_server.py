"""The OpenAI stand-in as the real client sees it."""

import numpy as np
import openai
import pytest
from openai import OpenAI

from tests.fakes.openai_server import EMBEDDINGS, RESPONSES, OpenAIServer
from tests.fakes.openai_steps import (
    CutOff,
    ErrorFrame,
    Failed,
    HttpError,
    Incomplete,
    RawBody,
    Refusal,
    Slow,
    Step,
    Text,
    Vectors,
    insufficient_quota,
    rate_limited,
    unauthorized,
)

MODEL = "gpt-5.4-mini"
EMBEDDER = "text-embedding-3-small"


def client_of(server: OpenAIServer, max_retries: int = 0) -> OpenAI:
    return OpenAI(api_key="k", base_url=server.base_url, max_retries=max_retries, timeout=5)


def test_a_text_arrives_whole_and_streamed() -> None:
    with OpenAIServer() as server:
        server.respond(Text("one [slack:T:C:1]"), Text("two words and more"))
        client = client_of(server)
        whole = client.responses.create(model=MODEL, input="q", store=False)
        pieces = [
            event.delta
            for event in client.responses.create(model=MODEL, input="q", stream=True)
            if event.type == "response.output_text.delta"
        ]
    assert whole.output_text == "one [slack:T:C:1]"
    assert len(pieces) > 1 and "".join(pieces) == "two words and more"
    assert server.requests_to(RESPONSES)[0].body["store"] is False


def test_the_default_step_cites_the_first_id_of_the_request() -> None:
    with OpenAIServer() as server:
        reply = client_of(server).responses.create(model=MODEL, input="id synthetic:ops:p1, text")
    assert reply.output_text.endswith("[synthetic:ops:p1]")


@pytest.mark.parametrize(
    ("step", "last_event"),
    [
        (Text("x"), "response.completed"),
        (Refusal(), "response.completed"),
        (Incomplete("x"), "response.incomplete"),
        (Failed(), "response.failed"),
    ],
)
def test_a_stream_ends_with_its_status(step: Step, last_event: str) -> None:
    with OpenAIServer() as server:
        server.respond(step)
        events = list(client_of(server).responses.create(model=MODEL, input="q", stream=True))
    assert events[0].type == "response.created"
    assert events[-1].type == last_event


def test_statuses_arrive_without_a_stream() -> None:
    with OpenAIServer() as server:
        server.respond(Incomplete("half"), Failed(), Refusal("no"), RawBody())
        client = client_of(server)
        incomplete, failed, refused, page = (
            client.responses.create(model=MODEL, input="q") for _ in range(4)
        )
    assert incomplete.incomplete_details and incomplete.status == "incomplete"
    assert failed.error and failed.status == "failed"
    assert refused.output[-1].to_dict()["content"] == [{"type": "refusal", "refusal": "no"}]
    assert not isinstance(page, openai.types.responses.Response)


@pytest.mark.parametrize(
    ("step", "error"),
    [
        (unauthorized(), openai.AuthenticationError),
        (rate_limited(), openai.RateLimitError),
        (insufficient_quota(), openai.RateLimitError),
        (HttpError(500), openai.InternalServerError),
        (HttpError(503), openai.InternalServerError),
        (CutOff(), openai.APIConnectionError),
        (Slow(20, Text("late")), openai.APITimeoutError),
    ],
)
def test_errors_raise_what_the_client_documents(step: Step, error: type[Exception]) -> None:
    with OpenAIServer() as server:
        server.respond(step)
        with pytest.raises(error):
            client_of(server).with_options(timeout=0.5).responses.create(model=MODEL, input="q")


def test_a_cut_stream_fails_the_client() -> None:
    with OpenAIServer() as server:
        server.respond(CutOff("a longer text than one piece"))
        stream = client_of(server).responses.create(model=MODEL, input="q", stream=True)
        with pytest.raises(openai.APIConnectionError):
            list(stream)


def test_an_error_frame_is_the_last_event() -> None:
    with OpenAIServer() as server:
        server.respond(ErrorFrame("server_error", "broken"))
        events = list(client_of(server).responses.create(model=MODEL, input="q", stream=True))
    assert events[-1].type == "error" and events[-1].message == "broken"


def test_a_rate_limit_is_retried_after_its_own_time() -> None:
    with OpenAIServer() as server:
        server.respond(rate_limited(), Text("second"))
        reply = client_of(server, max_retries=1).responses.create(model=MODEL, input="q")
    assert reply.output_text == "second"


def test_both_encodings_give_the_same_deterministic_unit_vectors() -> None:
    with OpenAIServer() as server:
        client = client_of(server)
        coded = client.embeddings.create(model=EMBEDDER, input=["a b", "c"])
        plain = client.embeddings.create(
            model=EMBEDDER, input=["a b", "c"], encoding_format="float"
        )
    assert server.requests_to(EMBEDDINGS)[0].body["encoding_format"] == "base64"
    first = np.array([item.embedding for item in coded.data])
    assert first.shape == (2, 1536)
    assert np.allclose(first, [item.embedding for item in plain.data])
    assert np.allclose(np.linalg.norm(first, axis=1), 1)
    assert not np.allclose(first[0], first[1])


@pytest.mark.parametrize(
    "inputs",
    [
        [],
        ["a", ""],
        ["a"] * 2_049,
        ["abcd" * 8_193],
        ["abcd" * 8_000] * 38,
    ],
    ids=["none", "empty", "too many", "too long", "too long together"],
)
def test_embedding_limits_are_refused_with_400(inputs: list[str]) -> None:
    with OpenAIServer() as server, pytest.raises(openai.BadRequestError):
        client_of(server).embeddings.create(model=EMBEDDER, input=inputs)


def test_faulty_vectors_arrive_as_scripted() -> None:
    with OpenAIServer() as server:
        server.embed(Vectors(missing=1), Vectors(width=8), Vectors(reversed_order=True))
        client = client_of(server)
        short, narrow, turned = (
            client.embeddings.create(model=EMBEDDER, input=["a", "b", "c"]) for _ in range(3)
        )
    assert len(short.data) == 2
    assert len(narrow.data[0].embedding) == 8
    assert [item.index for item in turned.data] == [2, 1, 0]
