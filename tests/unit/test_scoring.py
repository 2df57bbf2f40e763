"""The request to a decision model, the reading of its reply, and the order."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.corpus import Message
from services.rerank.budget import CUT_MARK, cut, estimated_tokens, fair_cap, fit
from services.rerank.failures import MalformedReplyError, RefusedError, TierError
from services.rerank.scoring import (
    JEV,
    LEVELS,
    LUNA,
    NOTE,
    Options,
    build_request,
    order,
    read_scores,
)

QUESTION = "Which flag stopped the ferry-api pods from crash looping?"


def message(number: int, text: str, channel: str = "harbor-ops", author: str = "Ines") -> Message:
    return Message(
        message_id=f"slack:T0SECRET:C0SECRET:17000000{number:02}.000100",
        workspace_id="T0SECRET",
        channel_id="C0SECRET",
        channel_name=channel,
        author_id="U0SECRET",
        author_name=author,
        posted_at=datetime(2026, 8, 14, 9, number, tzinfo=UTC),
        text=text,
        thread_root_id="slack:T0SECRET:C0SECRET:1700000000.000100",
        permalink="https://example.test/archives/C0SECRET/p1",
        content_sha256="abc",
    )


TWELVE = [message(number, f"message {number}") for number in range(1, 13)]


def reply(**answers: Any) -> dict[str, Any]:
    return {"model": JEV, "answers": answers, "usage": {"input_tokens": 1, "output_tokens": 1}}


def scored(value: Any) -> dict[str, Any]:
    return {"type": "score", "score": value}


def test_the_body_is_the_documented_one() -> None:
    messages = [
        message(1, "crash loop is gone, set LAZY_TLS=1"),
        message(2, "ferry to the island leaves at 9", "random", "Tomo"),
    ]
    body = build_request(QUESTION, messages, Options(), "ask-7f3c").body(JEV)
    assert body == {
        "model": "typesafe/jev-1.13-20260917",
        "state": {
            "question": QUESTION,
            "messages": {
                "m01": {
                    "channel": "#harbor-ops",
                    "author": "Ines",
                    "date": "2026-08-14",
                    "text": "crash loop is gone, set LAZY_TLS=1",
                },
                "m02": {
                    "channel": "#random",
                    "author": "Tomo",
                    "date": "2026-08-14",
                    "text": "ferry to the island leaves at 9",
                },
            },
        },
        "questions": {
            key: {
                "type": "score",
                "instructions": {
                    "task": f"Rate `messages.{key}.text` as evidence for answering `question`. "
                    f"Judge `messages.{key}` alone; ignore every other message.",
                    "note": NOTE,
                },
                "criteria": list(LEVELS),
            }
            for key in ("m01", "m02")
        },
        "provider": {"data_collection": "deny", "zdr": True, "allow_fallbacks": False},
        "session_id": "ask-7f3c",
    }


def test_luna_is_sent_the_same_body_with_only_the_model_changed() -> None:
    request = build_request(QUESTION, TWELVE, Options())
    assert request.body(LUNA) == request.body(JEV) | {
        "model": "openai/gpt-6-luna-decisions-20261006"
    }


def test_ten_messages_are_asked_about_under_opaque_keys() -> None:
    request = build_request(QUESTION, TWELVE, Options())
    keys = [f"m{number:02}" for number in range(1, 11)]
    assert list(request.questions) == keys
    assert list(request.state["messages"]) == keys


def test_no_id_of_a_message_person_channel_or_workspace_is_sent() -> None:
    sent = json.dumps(build_request(QUESTION, TWELVE, Options()).body(JEV))
    assert "SECRET" not in sent
    assert "slack:" not in sent


def test_an_empty_session_id_is_left_out() -> None:
    assert "session_id" not in build_request(QUESTION, TWELVE, Options()).body(JEV)


def test_the_date_is_the_day_in_utc() -> None:
    late = timezone(timedelta(hours=-5))
    posted = Message(**{**vars(TWELVE[0]), "posted_at": datetime(2026, 8, 14, 23, 0, tzinfo=late)})
    entry = build_request(QUESTION, [posted], Options()).state["messages"]["m01"]
    assert entry["date"] == "2026-08-15"


@given(st.text(), st.text())
def test_text_changes_nothing_but_its_own_field(hostile: str, question: str) -> None:
    plain = build_request("q", [message(1, "plain"), TWELVE[1]], Options()).body(JEV)
    body = build_request(question, [message(1, hostile), TWELVE[1]], Options()).body(JEV)
    sent = json.loads(json.dumps(body))
    assert sent["state"]["messages"]["m01"].pop("text") == hostile
    assert sent["state"].pop("question") == question
    del plain["state"]["messages"]["m01"]["text"], plain["state"]["question"]
    assert sent == plain


def test_the_set_level_question_is_asked_only_when_set() -> None:
    asked = build_request(QUESTION, TWELVE, Options(ask_answerable=True)).questions
    assert len(asked) == 11
    assert asked["answerable"]["type"] == "noul"
    assert len(build_request(QUESTION, TWELVE, Options()).questions) == 10


def test_privacy_restrictions_can_be_lifted() -> None:
    request = build_request(QUESTION, TWELVE, Options(private=False))
    assert request.provider == {"data_collection": "allow", "allow_fallbacks": False}


def test_long_texts_are_sent_whole_while_they_fit() -> None:
    long = "A sentence of twelve thousand characters about the ferry. " * 130
    request = build_request(QUESTION, [message(1, long)] * 10, Options())
    assert request.cut_texts == 0
    assert {entry["text"] for entry in request.state["messages"].values()} == {long}


def test_beyond_the_limit_only_the_longest_texts_are_cut_and_counted() -> None:
    messages = [message(1, "word " * 40_000), message(2, "short"), message(3, "word " * 30_000)]
    request = build_request(QUESTION, messages, Options())
    texts = [entry["text"] for entry in request.state["messages"].values()]
    assert request.cut_texts == 2
    assert texts[1] == "short"
    assert texts[0] == texts[2]
    assert texts[0].endswith(CUT_MARK)
    assert estimated_tokens(json.dumps(request.state, ensure_ascii=False)) <= 32_000


def test_an_endless_question_leaves_room_for_the_messages() -> None:
    request = build_request("why " * 100_000, TWELVE, Options())
    assert request.cut_texts == 0
    assert estimated_tokens(request.state["question"]) <= 8_000


@given(st.lists(st.text(max_size=300), max_size=10), st.integers(50, 400))
def test_texts_are_cut_only_when_they_do_not_fit_and_then_fit(texts: list[str], room: int) -> None:
    fitted = fit(texts, room)
    if sum(map(estimated_tokens, texts)) <= room:
        assert fitted == texts
    else:
        marks = len(texts) * estimated_tokens(CUT_MARK)
        assert sum(map(estimated_tokens, fitted)) <= room + marks
        assert all(
            after in (before, before[: len(after) - len(CUT_MARK)] + CUT_MARK)
            for before, after in zip(texts, fitted, strict=True)
        )


@pytest.mark.parametrize(
    ("sizes", "total", "cap"),
    [
        ([], 10, 0),
        ([3, 4], 10, 4),
        ([9, 9], 10, 5),
        ([1, 9, 9], 10, 4),
        ([1, 2, 100], 10, 7),
        ([5, 5], -1, 0),
    ],
)
def test_the_cap_is_shared_fairly(sizes: list[int], total: int, cap: int) -> None:
    assert fair_cap(sizes, total) == cap


@pytest.mark.parametrize(
    ("text", "tokens"),
    [("", 0), ("a", 1), ("word word", 3), ("2026-08-14", 10), ("データ", 4), ("🎉", 2)],
)
def test_tokens_are_estimated_by_script(text: str, tokens: int) -> None:
    assert estimated_tokens(text) == tokens


def test_a_cut_text_says_so() -> None:
    assert cut("word " * 10, 100) == "word " * 10
    assert cut("word " * 100, 10) == "word word word word word […]"


def test_scores_are_read_in_the_order_of_the_request() -> None:
    request = build_request(QUESTION, TWELVE[:3], Options())
    scores = read_scores(reply(m03=scored(3), m01=scored(0.03), m02=scored(2.91)), request)
    assert scores.values == (0.03, 2.91, 3.0)
    assert scores.model == JEV
    assert scores.answerable is None


def test_the_probability_of_an_answer_is_read_when_asked_for() -> None:
    request = build_request(QUESTION, TWELVE[:1], Options(ask_answerable=True))
    good = reply(m01=scored(1), answerable={"type": "noul", "noul": 0.95})
    assert read_scores(good, request).answerable == 0.95


GOOD = reply(m01=scored(1), m02=scored(2))


@pytest.mark.parametrize(
    "document",
    [
        None,
        [],
        "text",
        {},
        {**GOOD, "model": None},
        {**GOOD, "model": 7},
        {**GOOD, "answers": None},
        {**GOOD, "answers": [scored(1), scored(2)]},
        reply(m01=scored(1)),
        reply(m01=scored(1), m02=scored(1), m03=scored(1)),
        reply(m01=scored(1), m2=scored(1)),
        reply(m01=scored(1), m02=2.5),
        reply(m01=scored(1), m02=None),
        reply(m01=scored(1), m02={"score": 1}),
        reply(m01=scored(1), m02={"type": "noul", "noul": 0.5}),
        reply(m01=scored(1), m02={"type": "score"}),
        reply(m01=scored(1), m02=scored(None)),
        reply(m01=scored(1), m02=scored("2")),
        reply(m01=scored(1), m02=scored([2])),
        reply(m01=scored(1), m02=scored(True)),
        reply(m01=scored(1), m02=scored(float("nan"))),
        reply(m01=scored(1), m02=scored(float("inf"))),
        reply(m01=scored(1), m02=scored(float("-inf"))),
        reply(m01=scored(1), m02=scored(3.01)),
        reply(m01=scored(1), m02=scored(-0.01)),
        reply(m01=scored(1), m02=scored(10**400)),
    ],
)
def test_a_reply_that_is_not_as_documented_is_malformed(document: object) -> None:
    request = build_request(QUESTION, TWELVE[:2], Options())
    with pytest.raises(MalformedReplyError):
        read_scores(document, request)


@pytest.mark.parametrize("answer", [{"type": "noul"}, {"type": "noul", "noul": 1.01}, scored(1)])
def test_the_set_level_answer_is_checked_as_strictly(answer: object) -> None:
    request = build_request(QUESTION, TWELVE[:1], Options(ask_answerable=True))
    with pytest.raises(MalformedReplyError):
        read_scores(reply(m01=scored(1), answerable=answer), request)


def test_one_refused_message_fails_the_whole_reply() -> None:
    request = build_request(QUESTION, TWELVE[:2], Options())
    with pytest.raises(RefusedError):
        read_scores(reply(m01=scored(1), m02={"type": "refusal"}), request)


def test_an_error_beside_good_answers_still_fails_the_reply() -> None:
    request = build_request(QUESTION, TWELVE[:2], Options())
    with pytest.raises(TierError) as raised:
        read_scores({**GOOD, "error": {"code": 502, "message": "upstream"}}, request)
    assert raised.value.cause == "error_in_reply"


@given(st.recursive(st.none() | st.booleans() | st.floats() | st.text(), st.lists))
def test_no_reply_raises_anything_but_a_tier_error(document: object) -> None:
    request = build_request(QUESTION, TWELVE[:1], Options())
    for wrapped in (
        document,
        {"error": document},
        reply(m01=document),
        reply(m01=scored(document)),
    ):
        try:
            assert 0 <= read_scores(wrapped, request).values[0] <= 3
        except TierError as failure:
            assert failure.cause in ("malformed", "error_in_reply")


@pytest.mark.parametrize(
    ("count", "scores", "expected"),
    [
        (0, [], []),
        (3, [0.5, 2.0, 1.0], [1, 2, 0]),
        (4, [1.0, 2.0, 1.0, 2.0], [1, 3, 0, 2]),
        (3, [0.0, 0.0, 0.0], [0, 1, 2]),
        (5, [1.0, 2.0, 3.0], [2, 1, 0, 3, 4]),
        (2, [], [0, 1]),
    ],
)
def test_messages_are_ordered_by_score_and_ties_and_the_unscored_as_given(
    count: int, scores: list[float], expected: list[int]
) -> None:
    assert order(count, scores) == expected


@given(st.lists(st.floats(0, 3), max_size=10), st.integers(0, 5))
def test_an_order_loses_and_repeats_nothing(scores: list[float], unscored: int) -> None:
    count = len(scores) + unscored
    positions = order(count, scores)
    assert sorted(positions) == list(range(count))
    assert positions[len(scores) :] == list(range(len(scores), count))
