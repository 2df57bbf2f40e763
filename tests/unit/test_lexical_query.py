"""The lexical query: terms as described. That PostgreSQL reads them so is tested beside it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.retrieve.lexical_query import (
    MAX_TERM_BYTES,
    MAX_TERMS,
    STOP_WORDS,
    distinct_words,
    lexical_query,
)


@pytest.mark.parametrize(
    ("question", "query"),
    [
        (
            "Which command fixed the local 28P01 Postgres failure?",
            "command | fixed | local | 28p01 | postgres | failure",
        ),
        ("who is the on-call?", "call"),
        ("deploy, Deploy and DEPLOY", "deploy"),
        ("O'Dea, O’Dea and O＇Dea", "o | dea"),
        ("MAX_RETRIES for team:web", "max | retries | team | web"),
        ("pre-flight", "pre | flight"),
        ("Straße in Malmö", "straße | malmö"),
        ("ΟΔΟΣ", "οδοσ"),
        ("İzmir", "İzmir"),
        ("配置 エラー 🚀", "配置 | エラー"),
        ("हिन्दी भाषा", "हिन्दी | भाषा"),
        ("x² and ½ and Ⅷ", "x | ⅷ"),
        ("", ""),
        ("what is it?", ""),
        ("'\":* & | ! <-> ( \\", ""),
    ],
)
def test_terms_are_lowercased_runs_of_letters_and_digits(question: str, query: str) -> None:
    assert lexical_query(question) == query


@pytest.mark.parametrize(
    ("question", "query"),
    [
        ("close INC-4821", "close | inc | 4821 | 'inc-4821'"),
        ("edit config.yaml", "edit | config | yaml | 'config.yaml'"),
        ("read src/a_b.py", "read | src | b | py | 'src/a_b.py'"),
        ("grep /etc/passwd", "grep | etc | passwd | '/etc/passwd'"),
        ("exit -1", "exit | 1 | '-1'"),
        ("mail bob@ex.test", "mail | bob | ex | test | 'bob@ex.test'"),
    ],
)
def test_what_the_index_holds_as_one_word_is_asked_for_whole_too(question: str, query: str) -> None:
    assert lexical_query(question) == query


def test_an_identifier_is_one_word_to_count() -> None:
    assert distinct_words("close INC-4821 and and/or") == [
        "close",
        "'inc-4821' | inc & 4821",
        "'and/or'",
    ]


def test_there_are_postgresqls_127_stop_words() -> None:
    assert len(STOP_WORDS) == 127


def test_a_long_question_keeps_its_first_terms() -> None:
    question = " ".join(f"word{n}" for n in range(2_000))
    terms = lexical_query(question).split(" | ")
    assert terms == [f"word{n}" for n in range(MAX_TERMS)]


def test_a_word_longer_than_any_the_index_holds_is_left_out() -> None:
    assert lexical_query("a" * (MAX_TERM_BYTES + 1) + " deploy") == "deploy"
    assert lexical_query("ü" * (MAX_TERM_BYTES // 2)) == "ü" * (MAX_TERM_BYTES // 2)


@given(st.text(max_size=500))
def test_the_query_holds_nothing_but_operands(question: str) -> None:
    query = lexical_query(question)
    operands = query.split(" | ") if query else []
    assert len(operands) == len(set(operands)) <= MAX_TERMS
    for operand in operands:
        assert operand not in STOP_WORDS
        assert not set(operand) & set(' |&!<>()\\"*\0'), operand
        assert operand.count("'") == 2 * operand.startswith("'")
