"""What the Decisions stand-in can do with a request, one function a mode.

A mode makes an ``Output`` of the faithful reply it is given. ``MODES`` names them all, for tests
that go through many and for the command line.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from tests.fakes.decisions_replies import Body, error_body, score_answer

Delivery = Literal["whole", "slow", "trickle", "cut", "reset"]


@dataclass(frozen=True)
class Output:
    """What goes over the wire, and how it is delivered."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    content_type: str = "application/json"
    delivery: Delivery = "whole"


Mode = Callable[[Body], Output]


def ok(reply: Body) -> Output:
    """The faithful reply."""
    return Output(200, json.dumps(reply).encode())


def delivered(delivery: Delivery) -> Mode:
    """The faithful reply, delivered badly."""
    return lambda reply: Output(200, json.dumps(reply).encode(), delivery=delivery)


def failing(status: int, error_type: str, **headers: str) -> Mode:
    """An error status with the documented body; header names with ``_`` for ``-``."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}

    def fail(reply: Body) -> Output:
        body = error_body(status, f"Failed: {error_type}", error_type, reply["provider"])
        return Output(status, json.dumps(body).encode(), named)

    return fail


def every_answer(change: Callable[[Body], Any]) -> Mode:
    """The faithful reply with every score answer replaced by ``change(answer)``."""

    def changed(reply: Body) -> Output:
        answers = {
            key: change(answer) if answer["type"] == "score" else answer
            for key, answer in reply["answers"].items()
        }
        return ok({**reply, "answers": answers})

    return changed


def first_answer(change: Callable[[Body], Any]) -> Mode:
    """The faithful reply with only its first answer replaced by ``change(answer)``."""

    def changed(reply: Body) -> Output:
        first = next(iter(reply["answers"]))
        return ok({**reply, "answers": reply["answers"] | {first: change(reply["answers"][first])}})

    return changed


def scored(value: object) -> Mode:
    """The faithful reply whose first score is ``value``, whatever that is."""
    return first_answer(lambda answer: {**answer, "score": value})


def overflowing_score(reply: Body) -> Output:
    """A number that is valid JSON and infinite once parsed."""
    return Output(200, scored("here")(reply).body.replace(b'"here"', b"1e999"))


def missing_key(reply: Body) -> Output:
    """One answer less than was asked for."""
    return ok({**reply, "answers": dict(list(reply["answers"].items())[:-1])})


def extra_key(reply: Body) -> Output:
    """One answer that nobody asked for."""
    first = next(iter(reply["answers"].values()))
    return ok({**reply, "answers": reply["answers"] | {"m99": first}})


def error_in_reply(reply: Body) -> Output:
    """Status 200 around an error."""
    body = error_body(502, "Upstream failed", "provider_unavailable", reply["provider"])
    return Output(200, json.dumps(body).encode())


def flagged(_: Body) -> Output:
    """OpenRouter's own moderation: no error_type, but what was flagged."""
    metadata = {"reasons": ["violence"], "flagged_input": "…", "provider_name": "OpenAI"}
    body = {"error": {"code": 403, "message": "Input was flagged", "metadata": metadata}}
    return Output(403, json.dumps(body).encode())


def in_flight_budget(_: Body) -> Output:
    """A 402 that passes by itself."""
    metadata = {"error_type": "payment_required", "limit_source": "openrouter_in_flight_budget"}
    body = {"error": {"code": 402, "message": "Too much in flight", "metadata": metadata}}
    return Output(402, json.dumps(body).encode(), {"Retry-After": "2"})


def raw(status: int, body: bytes, content_type: str = "application/json") -> Mode:
    """Exactly these bytes."""
    return lambda _: Output(status, body, content_type=content_type)


def _tied(answer: Body) -> Body:
    levels = list(answer.get("legend", {}).values()) or ["0", "1", "2", "3"]
    return score_answer(1.0, levels, "legend" in answer)


MODES: dict[str, Mode] = {
    "ok": ok,
    "tie": every_answer(_tied),
    "missing_key": missing_key,
    "extra_key": extra_key,
    "no_answers": lambda reply: ok({k: v for k, v in reply.items() if k != "answers"}),
    "answers_as_list": lambda reply: ok({**reply, "answers": list(reply["answers"].values())}),
    "no_model": lambda reply: ok({k: v for k, v in reply.items() if k != "model"}),
    "wrong_type": first_answer(lambda _: {"type": "noul", "noul": 0.5}),
    "answer_not_object": first_answer(lambda _: 2.5),
    "text_score": scored("2.5"),
    "null_score": scored(None),
    "bool_score": scored(True),
    "nan_score": scored(float("nan")),
    "infinite_score": scored(float("inf")),
    "score_too_high": scored(3.01),
    "negative_score": scored(-0.01),
    "overflowing_score": overflowing_score,
    "refusal_in_answer": first_answer(lambda _: {"type": "refusal"}),
    "refusal_403": failing(403, "refusal"),
    "policy_403": failing(403, "content_policy_violation"),
    "flagged_403": flagged,
    "permission_403": failing(403, "permission_denied"),
    "bad_request": failing(400, "invalid_request"),
    "context_too_long": failing(400, "context_length_exceeded"),
    "bad_key": failing(401, "authentication"),
    "no_credit": failing(402, "payment_required"),
    "in_flight_budget": in_flight_budget,
    "no_endpoints": failing(404, "not_found"),
    "too_large": failing(413, "payload_too_large"),
    "rate_limited": failing(429, "rate_limit_exceeded", Retry_After="30"),
    "server_error": failing(500, "server"),
    "bad_gateway_html": raw(502, b"<html><h1>502 Bad Gateway</h1></html>", "text/html"),
    "unavailable": failing(503, "provider_unavailable", Retry_After="5"),
    "edge_timeout": failing(524, "timeout"),
    "overloaded": failing(529, "provider_overloaded"),
    "error_in_reply": error_in_reply,
    "bad_key_in_reply": raw(
        200, json.dumps(error_body(401, "No auth credentials found", "authentication")).encode()
    ),
    "redirect": raw(307, b""),
    "no_content": raw(204, b""),
    "empty": raw(200, b""),
    "not_an_object": raw(200, b"[]"),
    "html": raw(200, b"<html>challenge</html>", "text/html"),
    "not_utf8": raw(200, b'{"answers": "\xff\xfe"}'),
    "deeply_nested": raw(200, b"[" * 200_000),
    "huge": raw(200, b'{"answers": "' + b"x" * (2 << 20) + b'"}'),
    "slow": delivered("slow"),
    "trickle": delivered("trickle"),
    "truncated": delivered("cut"),
    "reset": delivered("reset"),
}
