"""The page against a whole stack of real processes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import grpc
import httpx
import pytest

from recall.gateway.v1 import gateway_pb2, gateway_pb2_grpc
from services.runtime.callers import FILE_NAME, Callers
from tests.e2e.conftest import Running

QUESTIONS = (
    "Which command fixed the local 28P01 Postgres failure?",
    "How much is the Small Quay plan a month?",
    "in:#incidents which commit was the bad one?",
    "Are we opening an office in Rotterdam?",
)
JSON_ONLY = {"accept": "application/json"}


@pytest.fixture
def page(beacon: Running) -> Iterator[httpx.Client]:
    """A client of the page."""
    address = f"http://127.0.0.1:{beacon.stack.port('gateway_http')}"
    with httpx.Client(base_url=address, timeout=60) as client:
        yield client


def asked(page: httpx.Client, question: str) -> dict[str, Any]:
    reply = page.post("/api/ask", json={"question": question}, headers=JSON_ONLY)
    assert reply.status_code == 200, reply.text
    answer: dict[str, Any] = reply.json()
    return answer


def ids(messages: list[dict[str, Any]]) -> list[str]:
    return [message["message_id"] for message in messages]


@pytest.fixture
def answers(beacon: Running) -> Iterator[gateway_pb2_grpc.RecallServiceStub]:
    """RecallService over plain gRPC."""
    with grpc.insecure_channel(f"127.0.0.1:{beacon.stack.port('gateway')}") as channel:
        yield gateway_pb2_grpc.RecallServiceStub(channel)


@pytest.mark.parametrize("question", QUESTIONS)
def test_one_context_gives_the_same_through_the_page_grpc_and_the_command(
    beacon: Running,
    page: httpx.Client,
    answers: gateway_pb2_grpc.RecallServiceStub,
    question: str,
) -> None:
    token = Callers(beacon.stack.home / FILE_NAME).token_of("operator")
    reader = gateway_pb2.Reader(workspace_id="beacon")
    request = gateway_pb2.AskRequest(reader=reader, question=question, explain=True)
    metadata = (("authorization", f"Bearer {token}"),)
    streamed = list(answers.Ask(request, timeout=60, metadata=metadata))[-1].answer
    shown = asked(page, question)
    printed = beacon.recall("ask", question, "--workspace", "beacon", "--json").json
    found = page.get("/api/search", params={"q": question}).json()
    listed = beacon.recall("search", question, "--workspace", "beacon", "--json").json

    assert shown["text"] == streamed.text == printed["text"]
    assert shown["outcome"] == printed["outcome"]
    assert shown["reason"] == streamed.reason == printed["reason"]
    assert ids(shown["citations"]) == ids(printed["citations"])
    assert ids(shown["citations"]) == [m.message_id for m in streamed.citations]
    evidence = [hit.message.message_id for hit in streamed.trace.hits]
    assert ids(found["messages"]) == ids(listed["messages"]) == evidence
    assert found["generation_id"] == shown["generation_id"] == streamed.generation_id


def test_a_private_channel_is_answered_like_one_that_does_not_exist(page: httpx.Client) -> None:
    question = "in:#{} how much money is the bridge loan?"
    private, absent = (asked(page, question.format(name)) for name in ("leads", "nowhere"))
    for answer, name in ((private, "leads"), (absent, "nowhere")):
        answer["timings_ms"] = {}
        answer["reason"] = answer["reason"].replace(name, "NAME")
    assert private == absent
    assert private["outcome"] == "abstained"


def test_no_private_message_is_found_however_it_is_asked_for(page: httpx.Client) -> None:
    forged = {
        "question": "How much money is the bridge loan?",
        "reader": {"workspace_id": "beacon", "channel_ids": ["leads"]},
        "channel_ids": ["leads"],
        "filter": {"channel": "leads"},
    }
    answer = page.post("/api/ask", json=forged, headers=JSON_ONLY).json()
    found = page.get("/api/search", params={"q": "bridge loan", "channel_ids": "leads"}).json()
    assert answer["outcome"] == "abstained"
    assert found["messages"]
    assert {message["channel"] for message in found["messages"]}.isdisjoint({"leads", "hiring"})


def test_every_cited_message_opens_inside_its_thread(page: httpx.Client) -> None:
    for cited in asked(page, QUESTIONS[0])["citations"]:
        thread = page.get("/api/thread", params={"message_id": cited["message_id"]}).json()
        assert cited["message_id"] in ids(thread["messages"])
