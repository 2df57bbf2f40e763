"""The Decisions stand-in speaks the documented wire format."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.fakes.decisions_modes import MODES
from tests.fakes.decisions_replies import JEV, LUNA, score_answer
from tests.fakes.decisions_server import CHAT_PATH, PATH, DecisionsServer

LEVELS = ["off", "background", "part", "all"]
HEADERS = {"Authorization": "Bearer k"}


@pytest.fixture
def decisions() -> Iterator[DecisionsServer]:
    with DecisionsServer() as server:
        yield server


def request_body(model: str) -> dict[str, Any]:
    return {
        "model": model,
        "state": {
            "question": "which flag stopped the crash loop",
            "messages": {"m01": {"text": "crash loop: set the flag"}, "m02": {"text": "lunch"}},
        },
        "questions": {
            "m01": {"type": "score", "instructions": "rate", "criteria": LEVELS},
            "m02": {"type": "score", "instructions": "rate", "criteria": LEVELS},
            "answerable": {"type": "noul", "instructions": "is it there"},
        },
    }


def post(decisions: DecisionsServer, body: Any, **headers: str) -> httpx.Response:
    return httpx.post(decisions.base_url + PATH, json=body, headers=HEADERS | headers)


@pytest.mark.parametrize(
    ("score", "probabilities", "confidence"),
    [
        (0.0, [1, 0, 0, 0], 1),
        (2.92, [0, 0, 0.08, 0.92], 0.89),
        (1.5, [0, 0.5, 0.5, 0], 0.33),
        (3.0, [0, 0, 0, 1], 1),
    ],
)
def test_an_answer_follows_the_published_arithmetic(
    score: float, probabilities: list[float], confidence: float
) -> None:
    assert score_answer(score, LEVELS, legend=True) == {
        "type": "score",
        "score": score,
        "legend": {"0": "off", "1": "background", "2": "part", "3": "all"},
        "probabilities": dict(zip("0123", probabilities, strict=True)),
        "confidence": confidence,
    }


def test_jev_and_luna_differ_as_documented(decisions: DecisionsServer) -> None:
    jev = post(decisions, request_body("typesafe/jev-1.13"))
    luna = post(decisions, request_body(LUNA))
    assert jev.json()["model"] == JEV
    assert set(jev.json()["answers"]) == {"m01", "m02", "answerable"}
    assert "legend" in jev.json()["answers"]["m01"]
    assert "legend" not in luna.json()["answers"]["m01"]
    assert jev.headers["X-Generation-Id"] == jev.json()["id"]
    for reply, price in ((jev.json(), 4.2e-8), (luna.json(), 1e-7)):
        assert reply["usage"]["cost"] == pytest.approx(reply["usage"]["input_tokens"] * price)


@pytest.mark.parametrize(
    "spoil",
    [
        {"model": "gpt-5.4-mini"},
        {"questions": {}},
        {"questions": {"m01": {"type": "score", "instructions": "rate", "criteria": ["one"]}}},
        {"questions": {"m01": {"type": "noul", "instructions": "?", "criteria": {"true": "t"}}}},
        {"state": {"question": "q", "messages": {"m01": {"text": "long " * 40_000}}}},
    ],
)
def test_a_body_that_the_api_refuses_is_refused(
    decisions: DecisionsServer, spoil: dict[str, Any]
) -> None:
    reply = post(decisions, request_body(JEV) | spoil)
    assert reply.status_code == 400
    assert reply.json()["error"]["code"] == 400


def test_a_call_without_a_key_is_unauthorized(decisions: DecisionsServer) -> None:
    reply = httpx.post(decisions.base_url + PATH, json=request_body(JEV))
    assert (reply.status_code, reply.json()["error"]["code"]) == (401, 401)


def test_the_chat_endpoint_says_where_decision_models_live(decisions: DecisionsServer) -> None:
    reply = httpx.post(decisions.base_url + CHAT_PATH, json={"model": JEV, "messages": []})
    assert reply.status_code == 400
    assert "Use the /api/alpha/decisions endpoint" in reply.json()["error"]["message"]


@pytest.mark.parametrize(
    ("mode", "status"), [("rate_limited", 429), ("overloaded", 529), ("edge_timeout", 524)]
)
def test_errors_carry_their_code_twice(decisions: DecisionsServer, mode: str, status: int) -> None:
    decisions.behave(jev=mode)
    reply = post(decisions, request_body(JEV))
    assert (reply.status_code, reply.json()["error"]["code"]) == (status, status)
    assert reply.json()["error"]["metadata"]["provider_name"] == "TypeSafe"
    assert ("Retry-After" in reply.headers) is (mode == "rate_limited")


def test_a_mode_can_be_set_for_every_name() -> None:
    assert {"ok", "tie", "slow", "trickle", "truncated", "reset", "nan_score"} <= set(MODES)
