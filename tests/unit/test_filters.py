"""Typed filters: what is one, what only looks like one, what a date means."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import grpc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.corpus import Filter
from services.retrieve.filters import override
from services.runtime.errors import CallError
from services.typed_filters import take_filters

NOW = datetime(2026, 9, 10, 3, 30, tzinfo=UTC)


def day(month: int, number: int) -> datetime:
    return datetime(2026, month, number, tzinfo=UTC)


@pytest.mark.parametrize(
    ("typed", "question", "narrowing"),
    [
        ("who deployed in:#ops", "who deployed", Filter(in_channel="ops")),
        ("who deployed in:ops?", "who deployed ?", Filter(in_channel="ops")),
        ("in:<#C1|ops> who deployed", "who deployed", Filter(in_channel="C1")),
        ("in:<#C1> who deployed", "who deployed", Filter(in_channel="C1")),
        ('who in:"release train" won', "who won", Filter(in_channel="release train")),
        ('who in:#"release train" won', "who won", Filter(in_channel="release train")),
        ("IN:#Ops who", "who", Filter(in_channel="Ops")),
        ("deploys from:@linnea", "deploys", Filter(author="linnea")),
        ("deploys from:linnea", "deploys", Filter(author="linnea")),
        ('deploys from:"Linnea Berg"', "deploys", Filter(author="Linnea Berg")),
        ("deploys From:“Linnea Berg”, please", "deploys , please", Filter(author="Linnea Berg")),
        ("deploys from:<@U1>", "deploys", Filter(author="U1")),
        ("deploys from:<@U1|linnea>", "deploys", Filter(author="U1")),
        ("from:François said", "said", Filter(author="François")),
        ("from:o'dea said", "said", Filter(author="o'dea")),
        ("after:2026-08-31 deploys", "deploys", Filter(posted_after=day(8, 31))),
        ('deploys before:"2026-08-31"', "deploys", Filter(posted_before=day(8, 31))),
        ("deploys after:yesterday", "deploys", Filter(posted_after=day(9, 9))),
        ("deploys Before:Today.", "deploys .", Filter(posted_before=day(9, 10))),
        (
            "what\nin:#ops happened from:@bo after:2026-08-01\nbefore:2026-08-02",
            "what\nhappened",
            Filter(day(8, 1), day(8, 2), "ops", "bo"),
        ),
        ("who in:#ops won in:#ops", "who won", Filter(in_channel="ops")),
    ],
)
def test_a_typed_filter_is_taken_out_of_the_question(
    typed: str, question: str, narrowing: Filter
) -> None:
    assert take_filters(typed, NOW) == (question, narrowing)


@pytest.mark.parametrize(
    "typed",
    [
        "see https://ex.test/?in:ops&from:bo",
        "see https://ex.test/in:ops",
        "at 12:30 or before: noon",
        "is it in: ops",
        "from: bo to: linnea",
        "built-in:ops",
        "what does `in:#ops` do",
        "```\nfrom:bo after:never\n```",
        "what is (in:ops)",
        'the text "from:bo"',
        "begin:here and login:bo",
        "in:???",
        "from:",
        "in:# nothing",
    ],
)
def test_what_only_looks_like_a_filter_is_left_alone(typed: str) -> None:
    assert take_filters(typed, NOW) == (typed, Filter())


@pytest.mark.parametrize(
    "typed",
    ["after:2026-02-30", "before:monday", "after:2026-9-1", "after:20260901", "before:12:30"],
)
def test_a_bad_date_is_named_and_the_remedy_given(typed: str) -> None:
    with pytest.raises(CallError) as raised:
        take_filters(f"deploys {typed}", NOW)
    assert raised.value.code == grpc.StatusCode.INVALID_ARGUMENT
    assert typed in raised.value.message
    assert "2026-08-31" in raised.value.message
    assert "back-ticks" in raised.value.message


def test_one_filter_with_two_values_is_refused() -> None:
    with pytest.raises(CallError, match="in:ops and in:dev contradict"):
        take_filters("who in:#ops in:#dev", NOW)


def test_today_is_the_day_in_utc() -> None:
    late = datetime(2026, 9, 10, 23, 30, tzinfo=timezone(timedelta(hours=-5)))
    assert take_filters("x after:today", late)[1].posted_after == day(9, 11)


def test_a_typed_filter_wins_over_the_same_one_set_outside() -> None:
    explicit = Filter(posted_after=day(8, 1), in_channel="#dev", author="@bo")
    typed = Filter(posted_after=day(8, 5), in_channel="ops")
    assert override(explicit, typed) == Filter(day(8, 5), None, "ops", "bo")


def test_an_empty_range_is_refused() -> None:
    with pytest.raises(CallError, match="earlier than before"):
        override(Filter(posted_after=day(8, 2)), Filter(posted_before=day(8, 2)))


@given(st.text(max_size=300))
def test_a_question_without_a_colon_is_only_stripped(text: str) -> None:
    question = text.replace(":", "")
    assert take_filters(question, NOW) == (question.strip(), Filter())


@given(st.text(alphabet="in:#from\"“”<>@|`' ()?.a1\n", max_size=80))
def test_any_question_is_understood_or_refused_with_its_reason(text: str) -> None:
    try:
        question, _ = take_filters(text, NOW)
    except CallError as error:
        assert error.code == grpc.StatusCode.INVALID_ARGUMENT
    else:
        assert len(question) <= len(text)
