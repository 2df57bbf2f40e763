"""What each HTTP status and error body stands for, and what the breaker makes of it."""

from __future__ import annotations

from typing import Any

import pytest

from services.rerank.breaker import Effect
from services.rerank.decisions import parse_json
from services.rerank.failures import MalformedReplyError, failure_in_reply, failure_of_status


def body(code: int, error_type: str = "", **metadata: Any) -> dict[str, Any]:
    details = metadata | ({"error_type": error_type} if error_type else {})
    return {"error": {"code": code, "message": "text of a message", "metadata": details}}


@pytest.mark.parametrize(
    ("status", "document", "cause", "effect"),
    [
        (400, body(400, "invalid_request"), "http_400", Effect.COUNTS),
        (400, body(400, "context_length_exceeded"), "http_400", Effect.FORGIVEN),
        (400, body(400, "content_policy_violation"), "refusal", Effect.FORGIVEN),
        (401, body(401, "authentication"), "http_401", Effect.TRIPS),
        (401, None, "http_401", Effect.TRIPS),
        (402, body(402, "payment_required"), "http_402", Effect.TRIPS),
        (
            402,
            body(402, "payment_required", limit_source="openrouter_in_flight_budget"),
            "http_402",
            Effect.COUNTS,
        ),
        (403, body(403, "refusal"), "refusal", Effect.FORGIVEN),
        (403, body(403, "content_policy_violation"), "refusal", Effect.FORGIVEN),
        (403, body(403, flagged_input="…", reasons=["violence"]), "refusal", Effect.FORGIVEN),
        (403, body(403, "permission_denied"), "http_403", Effect.COUNTS),
        (403, None, "http_403", Effect.FORGIVEN),
        (404, body(404, "not_found"), "http_404", Effect.COUNTS),
        (413, body(413, "payload_too_large"), "http_413", Effect.FORGIVEN),
        (429, body(429, "rate_limit_exceeded"), "http_429", Effect.COUNTS),
        (502, None, "http_502", Effect.COUNTS),
        (524, body(524, "timeout"), "http_524", Effect.COUNTS),
        (529, body(529, "provider_overloaded"), "http_529", Effect.COUNTS),
        (503, {"error": "a text"}, "http_503", Effect.COUNTS),
        (503, {"error": {"metadata": None}}, "http_503", Effect.COUNTS),
        (503, ["list"], "http_503", Effect.COUNTS),
        (307, None, "http_307", Effect.COUNTS),
    ],
)
def test_a_status_has_one_cause_and_one_effect(
    status: int, document: object, cause: str, effect: Effect
) -> None:
    failure = failure_of_status(status, document)
    assert (failure.cause, failure.effect) == (cause, effect)


@pytest.mark.parametrize(
    ("error", "cause", "effect"),
    [
        (body(502, "provider_unavailable")["error"], "error_in_reply", Effect.COUNTS),
        (body(401, "authentication")["error"], "error_in_reply", Effect.TRIPS),
        (body(403, "refusal")["error"], "refusal", Effect.FORGIVEN),
        ({"code": "429", "message": "text"}, "error_in_reply", Effect.COUNTS),
        ({"code": True}, "error_in_reply", Effect.COUNTS),
        ("text", "error_in_reply", Effect.COUNTS),
        ({}, "error_in_reply", Effect.COUNTS),
    ],
)
def test_an_error_inside_a_reply_is_judged_by_its_code(
    error: object, cause: str, effect: Effect
) -> None:
    failure = failure_in_reply(error)
    assert (failure.cause, failure.effect) == (cause, effect)


@pytest.mark.parametrize("kind", ["provider_overloaded", "Key sk-123", "x" * 99, "<b>", 7])
def test_a_detail_never_repeats_the_providers_wording(kind: object) -> None:
    for failure in (
        failure_of_status(529, body(529, error_type="") | {"user_id": "me"}),
        failure_in_reply({"message": "text of a message", "metadata": {"error_type": kind}}),
    ):
        assert "text of a message" not in failure.detail
        assert "sk-123" not in failure.detail
        assert len(failure.detail) < 120


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b'{"a": NaN}',
        b'{"a": -Infinity}',
        b'{"a": 1',
        b"\xff\xfe{",
        b"[" * 200_000,
        b"1" * 5000,
    ],
)
def test_what_is_not_strict_json_is_malformed(raw: bytes) -> None:
    with pytest.raises(MalformedReplyError):
        parse_json(raw)
