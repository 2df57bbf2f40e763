"""What the page is sent, and what it may ask."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import grpc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recall.corpus.v1 import corpus_pb2
from recall.error.v1 import error_pb2
from recall.gateway.v1 import gateway_pb2
from recall.rerank.v1 import rerank_pb2
from services.corpus import instant
from services.gateway.http_requests import parse_ask, parse_search
from services.gateway.render import answer_json, blocks, call_error_json, event, http_status
from services.runtime.errors import CallError
from tests.scripted_stages import hit, message

A, B = "synthetic:ops:1", "slack:T1:C1:1700000000.000100"


def flat(text: str) -> list[Any]:
    """The segments of a text of one line."""
    return [segment for block in blocks(text, [A, B]) for segment in block["segments"]]


@pytest.mark.parametrize(
    ("text", "segments"),
    [
        ("", []),
        ("Plain.", [{"text": "Plain."}]),
        (f"Yes [{A}].", [{"text": "Yes"}, {"citations": [1]}, {"text": "."}]),
        (f"Yes [{A}] [{B}].", [{"text": "Yes"}, {"citations": [1, 2]}, {"text": "."}]),
        (f"Yes [{B}, {A}; {A}]", [{"text": "Yes"}, {"citations": [2, 1]}]),
        (f"[{A}] leads.", [{"citations": [1]}, {"text": " leads."}]),
        ("An [array] stays.", [{"text": "An [array] stays."}]),
        ("[synthetic:ops:9] is unknown.", [{"text": "[synthetic:ops:9] is unknown."}]),
        (f"[{A}, see above]", [{"text": f"[{A}, see above]"}]),
        ("[]", [{"text": "[]"}]),
    ],
)
def test_cited_ids_become_numbers_and_all_other_brackets_stay(
    text: str, segments: list[Any]
) -> None:
    assert flat(text) == segments


def test_lines_become_paragraphs_and_items() -> None:
    text = f"Two things:\n\n- one [{A}]\n* two\n*emphasis* is no item"
    assert [(block["kind"], len(block["segments"])) for block in blocks(text, [A])] == [
        ("paragraph", 1),
        ("item", 2),
        ("item", 1),
        ("paragraph", 1),
    ]


@given(st.text())
def test_text_without_citations_loses_nothing_but_line_breaks_and_bullets(text: str) -> None:
    shown = "".join(segment["text"] for block in blocks(text, []) for segment in block["segments"])
    remaining = iter(text)
    assert all(letter in remaining for letter in shown)
    letters = [letter for letter in text if letter.isalnum()]
    assert [letter for letter in shown if letter.isalnum()] == letters


def test_an_answer_is_in_the_words_of_the_command() -> None:
    cited = message(1, "Thursday.")
    answer = gateway_pb2.Answer(
        outcome=corpus_pb2.OUTCOME_ANSWERED,
        text=f"Thursday [{cited.message_id}].",
        citations=[cited],
        rerank_tier=rerank_pb2.TIER_JEV,
        generation_id="g1",
        degraded=["dense_incomplete"],
        timings_ms={"total": 12.5},
    )
    shown = answer_json(answer)
    assert {key: shown[key] for key in ("outcome", "text", "reason", "rerank_tier")} == {
        "outcome": "answered",
        "text": f"Thursday [{cited.message_id}].",
        "reason": "",
        "rerank_tier": "jev",
    }
    assert shown["generation_id"] == "g1"
    assert shown["degraded"] == ["dense_incomplete"]
    assert shown["timings_ms"] == {"total": 12.5}
    assert shown["citations"] == [
        {
            "message_id": "synthetic:ops:1",
            "channel": "ops",
            "author": "Ana",
            "posted_at": "2026-08-03T09:01:00Z",
            "edited_at": None,
            "permalink": "",
            "text": "Thursday.",
            "is_bot": False,
        }
    ]


def test_unverified_sources_carry_how_they_were_found() -> None:
    answer = gateway_pb2.Answer(
        outcome=corpus_pb2.OUTCOME_SOURCES_ONLY, unverified_sources=[hit(message(1, "x"), 0)]
    )
    source = answer_json(answer)["unverified_sources"][0]
    assert (source["dense_rank"], source["verdict"], source["confidence"]) == (
        0,
        "unverified",
        None,
    )


def test_an_event_is_one_line_of_data_whatever_the_text_holds() -> None:
    frame = event("answer", {"text": "a\nb\r\n\n\u2028c", "n": 1}).decode()
    name, data, *rest = frame.split("\n")
    assert (name, rest) == ("event: answer", ["", ""])
    assert json.loads(data.removeprefix("data: "))["text"] == "a\nb\r\n\n\u2028c"


@pytest.mark.parametrize(
    ("code", "reason", "status"),
    [
        (grpc.StatusCode.INVALID_ARGUMENT, error_pb2.ERROR_REASON_INVALID_REQUEST, 400),
        (grpc.StatusCode.NOT_FOUND, error_pb2.ERROR_REASON_NOT_FOUND, 404),
        (grpc.StatusCode.UNAVAILABLE, error_pb2.ERROR_REASON_STAGE_UNAVAILABLE, 503),
        (grpc.StatusCode.UNAVAILABLE, error_pb2.ERROR_REASON_WORKSPACE_NOT_FOUND, 503),
        (grpc.StatusCode.NOT_FOUND, error_pb2.ERROR_REASON_WORKSPACE_NOT_FOUND, 503),
        (grpc.StatusCode.FAILED_PRECONDITION, error_pb2.ERROR_REASON_NO_ACTIVE_GENERATION, 503),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, error_pb2.ERROR_REASON_RATE_LIMITED, 429),
        (grpc.StatusCode.DEADLINE_EXCEEDED, error_pb2.ERROR_REASON_DEADLINE_TOO_SHORT, 504),
        (grpc.StatusCode.INTERNAL, error_pb2.ERROR_REASON_INTERNAL, 500),
    ],
)
def test_every_failed_call_has_its_http_status(
    code: grpc.StatusCode, reason: error_pb2.ErrorReason.ValueType, status: int
) -> None:
    assert http_status(CallError(code, reason, "message")) == status


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (b"", "body"),
        (b"{", "body"),
        (b"[" * 16_000, "body"),
        (b"\xff\xfe", "body"),
        (b'"text"', "body"),
        (b"[1]", "body"),
        (b"{}", "question"),
        (b'{"question": null}', "question"),
        (b'{"question": 7}', "question"),
        (b'{"question": " \\n"}', "question"),
        (b'{"question": "\\ud800"}', "question"),
        (b'{"question": "q", "filter": []}', None),
        (b'{"question": "q", "filter": "in"}', "filter"),
        (b'{"question": "q", "filter": {"channel": 7}}', "channel"),
        (b'{"question": "q", "filter": {"after": "yesterday"}}', "after"),
        (b'{"question": "q", "filter": {"before": 20260803}}', "before"),
        (b'{"question": "q", "filter": {"after": "0001-01-01T00:00:00+14:00"}}', "after"),
    ],
)
def test_a_malformed_question_is_refused_by_the_field_at_fault(
    body: bytes, field: str | None
) -> None:
    if field is None:
        assert parse_ask(body).question == "q"
        return
    with pytest.raises(CallError) as raised:
        parse_ask(body)
    assert raised.value.code is grpc.StatusCode.INVALID_ARGUMENT
    assert raised.value.metadata["field"] == field


def test_a_question_brings_its_filters_and_nothing_else() -> None:
    asked = parse_ask(
        b'{"question": "q", "filter": {"channel": "ops", "author": "Ana", "after": "2026-08-03",'
        b' "before": "2026-08-10T12:00:00+02:00"}, "workspace_id": "other"}'
    )
    assert asked.question == "q"
    assert (asked.narrowing.in_channel, asked.narrowing.author) == ("ops", "Ana")
    assert instant(asked.narrowing.posted_after) == datetime(2026, 8, 3, tzinfo=UTC)
    assert instant(asked.narrowing.posted_before) == datetime(2026, 8, 10, 10, tzinfo=UTC)


@pytest.mark.parametrize("limit", ["0", "51", "-1", "x", "9" * 5000, "1.5", "١"])
def test_a_search_asks_for_one_to_fifty_messages(limit: str) -> None:
    with pytest.raises(CallError):
        parse_search({"q": "x", "limit": limit})


@pytest.mark.parametrize(
    ("message", "retry_after_seconds", "shown"),
    [
        (
            "The retrieve stage can not be reached (UNAVAILABLE). Try again in a few seconds.",
            5.0,
            "The retrieve stage can not be reached. Try again in a few seconds.",
        ),
        ("Too many questions. Ask again in 2 s.", 2.0, "Too many questions."),
        ("Write the date like 2026-08-03 (UTC).", None, "Write the date like 2026-08-03 (UTC)."),
    ],
)
def test_a_visitor_reads_neither_status_codes_nor_a_waiting_time_twice(
    message: str, retry_after_seconds: float | None, shown: str
) -> None:
    error = CallError(
        grpc.StatusCode.UNAVAILABLE,
        error_pb2.ERROR_REASON_STAGE_UNAVAILABLE,
        message,
        retry_after_seconds=retry_after_seconds,
    )
    assert call_error_json(error)["error"]["message"] == shown
