"""Every question makes a query that PostgreSQL accepts, and that finds the question's own text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from services.retrieve.lexical_query import distinct_words, lexical_query

EVIL = [
    "team:web",
    "'\":*",
    "O'Dea",
    "a & | ! <-> (",
    "trailing \\",
    "O’Dea ＇quoted＇",
    "",
    "the and of",
    "x" * 10_000,
    "word " * 2_000,
    " ".join(f"word{n}" for n in range(1_500)),
    "'; DROP TABLE chunks; --",
    "%s %(x)s {width}",
    "a:*b <2> c",
    "\0nul\0",
    "🚀‍✈️ 配置文件 नमस्ते \u202eabc\u202c",
    "-" * 5_000 + "1",
    "a" + "/a" * 3_000,
    "<|endoftext|>",
]


@pytest.fixture(scope="module")
def connection(postgres_url: str) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(postgres_url, autocommit=True) as connected:
        yield connected


def matches(connection: psycopg.Connection[Any], text: str, query: str) -> bool:
    """Whether a text is found by a query, as the lexical arm asks."""
    row = connection.execute(
        "SELECT to_tsvector('simple', %s) @@ to_tsquery('simple', %s)", (text, query)
    ).fetchone()
    assert row is not None
    return bool(row[0])


@pytest.mark.parametrize("question", EVIL, ids=range(len(EVIL)))
def test_no_question_breaks_the_query_parser(
    connection: psycopg.Connection[Any], question: str
) -> None:
    for query in (lexical_query(question), *distinct_words(question)):
        matches(connection, "nothing like it", query)


@settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(question=st.text(max_size=200) | st.text(alphabet="aé1 '\"\\&|!():*<->./@_-", max_size=80))
def test_no_text_at_all_breaks_the_query_parser(
    connection: psycopg.Connection[Any], question: str
) -> None:
    for query in (lexical_query(question), *distinct_words(question)):
        matches(connection, "nothing like it", query)


WORDS = st.text(
    alphabet=st.characters(categories=["Lu", "Ll", "Lt", "Lo", "Nd", "Nl"]), min_size=1, max_size=12
)


@settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(words=st.lists(WORDS, min_size=1, max_size=6))
def test_every_term_of_letters_and_digits_finds_its_own_text(
    connection: psycopg.Connection[Any], words: list[str]
) -> None:
    text = " ".join(words)
    for term in lexical_query(text).split(" | "):
        if term:
            assert matches(connection, text, term), term


@pytest.mark.parametrize(
    "text",
    [
        "28P01",
        "INC-4821",
        "db-2 is at 91%",
        "3.2",
        "v2.3.1",
        "config.yaml",
        "node.js",
        "src/recall/a_b.py",
        "/etc/passwd",
        "~/notes.md",
        "../run.sh",
        "2026-08-03",
        "10.0.0.1:5432",
        "bob@ex.test",
        "https://grafana.example/d/abc?x=1",
        "pre-flight",
        "on-call rota",
        "O'Dea’s",
        "MAX_RETRIES",
        "exit code -11",
        "ＡＢＣ １２３",
        "naïve café",
        "nai\u0308ve cafe\u0301",
        "İzmir ΟΔΟΣ straße",
        "zero\u200bwidth soft\u00adhyphen",
        "配置文件错误 エラー",
        "हिन्दी ภาษาไทย",
        "🅰️ ⓐ Ⅷ",
    ],
)
def test_every_word_of_a_question_stands_in_the_same_text(
    connection: psycopg.Connection[Any], text: str
) -> None:
    words = distinct_words(text)
    assert words
    for word in words:
        assert matches(connection, f"before {text} after", word), word
