"""What a person asked for, and what they are told in the first hour."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.corpus import Filter
from services.gateway.slack.commands import (
    EMPTY,
    HELP,
    NO_WORDS,
    Typed,
    Verb,
    linked_messages,
    mentioned_ids,
    needs_context,
    parse,
    plain,
    read_filters,
    read_question,
    with_context,
)

NOW = datetime(2026, 8, 10, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "verb", "rest"),
    [
        ("", Verb.HELP, ""),
        ("   ", Verb.HELP, ""),
        ("help", Verb.HELP, ""),
        ("HELP", Verb.HELP, ""),
        ("help me find the key", Verb.ASK, "help me find the key"),
        ("ask when is it?", Verb.ASK, "when is it?"),
        ("ask", Verb.ASK, ""),
        ("when is it?", Verb.ASK, "when is it?"),
        ("search 28P01", Verb.SEARCH, "28P01"),
        ("catch-up", Verb.CATCH_UP, ""),
        ("catch up", Verb.CATCH_UP, ""),
        ("Catchup in:#ops", Verb.CATCH_UP, "in:#ops"),
        ("catch up in:<#C1|ops>", Verb.CATCH_UP, "in:<#C1|ops>"),
        ("catch upstream failures", Verb.ASK, "catch upstream failures"),
        ("summary in:#ops after:2026-08-01", Verb.SUMMARY, "in:#ops after:2026-08-01"),
        ("summary of the incident", Verb.ASK, "summary of the incident"),
        ("decisions about pricing", Verb.ASK, "decisions about pricing"),
        ('decisions in:"two words"', Verb.DECISIONS, 'in:"two words"'),
        ("settings", Verb.SETTINGS, ""),
        ("settings retention 90 days", Verb.SETTINGS, "retention 90 days"),
        ("settings BOTS off", Verb.SETTINGS, "BOTS off"),
        ("settings retention", Verb.SETTINGS, "retention"),
        (
            "settings retention of the old router?",
            Verb.ASK,
            "settings retention of the old router?",
        ),
        ("settings of the router?", Verb.ASK, "settings of the router?"),
        ("correct", Verb.CORRECT, ""),
        ("correct <https://a.slack.com/x>", Verb.CORRECT, "<https://a.slack.com/x>"),
        ("correct me if I am wrong", Verb.ASK, "correct me if I am wrong"),
    ],
)
def test_the_verb_of_a_text(text: str, verb: Verb, rest: str) -> None:
    assert parse(text) == Typed(verb, rest)


@given(st.text())
def test_every_text_is_understood_as_something(text: str) -> None:
    typed = parse(text)
    read_question(typed.text, NOW)
    plain(text, {})
    linked_messages(text)


def test_help_names_every_verb_and_filter() -> None:
    assert all(verb.value in HELP for verb in Verb if verb is not Verb.HELP)
    assert all(f"{key}:" in HELP for key in ("in", "from", "after", "before"))


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("", EMPTY),
        ("🎉🎉", NO_WORDS),
        (":tada: :+1::skin-tone-2:", NO_WORDS),
        ("???", NO_WORDS),
        ("in:#ops", "/recall catch-up in:#ops"),
        ("release after:2030-01-01", "after:2030-01-01 is in the future"),
        ("release after:tomorrow", "is not a date"),
        ("release in:ops in:leads", "contradict"),
    ],
)
def test_a_question_that_can_not_be_asked_is_answered_with_what_to_do(text: str, part: str) -> None:
    assert part in read_question(text, NOW).problem


@pytest.mark.parametrize("text", ["x" * 4_000, "why " * 1_000, "🎉 party", "なぜ", "28P01"])
def test_a_question_of_any_length_or_script_is_asked(text: str) -> None:
    asked = read_question(text, NOW)
    assert (asked.words, asked.problem) == (text.strip(), "")


def test_filters_are_taken_from_a_question_as_slack_writes_them() -> None:
    asked = read_question("who broke it in:<#C1|ops> from:<@U1|ada> after:2026-08-01", NOW)
    assert asked.words == "who broke it"
    after = datetime(2026, 8, 1, tzinfo=UTC)
    assert asked.narrowing == Filter(posted_after=after, in_channel="C1", author="U1")


def test_a_window_needs_no_filter() -> None:
    assert read_filters("", NOW) == read_filters(" ", NOW)
    assert read_filters("", NOW).problem == ""


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a &lt;b&gt; &amp;amp; c", "a <b> &amp; c"),
        ("see <https://a.test/x|the page>", "see the page"),
        ("see <https://a.test/x?a=1&amp;b=2>", "see https://a.test/x?a=1&b=2"),
        ("ask <@U1> or <@U2|bo> in <#C1|ops>", "ask @Ada or @bo in #ops"),
        ("ask <@U3>", "ask @U3"),
    ],
)
def test_slacks_markup_becomes_words(text: str, words: str) -> None:
    assert plain(text, {"U1": "Ada"}) == words


def test_people_named_by_id_alone_are_looked_up_once() -> None:
    assert mentioned_ids("<@U1> <@U2|bo> <@U1> <#C1>") == ["U1"]


@pytest.mark.parametrize(
    ("question", "needed"),
    [
        ("Is it still valid?", True),
        ("who decided that the window moves on Tuesday?", True),
        ("why?", True),
        ("which owner?", True),
        ("Which command fixed the Postgres failure?", False),
    ],
)
def test_a_question_that_points_at_its_thread_is_given_the_threads_words(
    question: str, needed: bool
) -> None:
    assert needs_context(question) is needed


def test_context_brings_words_and_no_filter() -> None:
    found = with_context("Is it valid?", "The window in:#ops is `Tuesday` " + "x " * 100)
    assert found.startswith("Is it valid? (The window in ops is Tuesday x")
    assert len(found.split("(")[1].split()) == 30
    assert with_context("Is it valid?", "🎉") == "Is it valid?"


def test_links_name_their_messages() -> None:
    text = (
        "<https://a.slack.com/archives/C1/p1788253200000100> "
        "https://a.slack.com/archives/C2/p1788253260000200?thread_ts=1788253200.000100&amp;cid=C2 "
        "https://a.slack.com/archives/C3/p17"
    )
    assert linked_messages(text) == [("C1", "1788253200.000100"), ("C2", "1788253260.000200")]
