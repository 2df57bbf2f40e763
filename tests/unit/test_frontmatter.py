"""What the head of a document declares, and that nothing in it is silently lost."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.ingest.frontmatter import Head, names_of, split


def head(*lines: str) -> Head:
    return split("\n".join(("---", *lines, "---", "body")))[0]


def problems(*lines: str) -> list[tuple[int, str]]:
    return [(problem.line, problem.message) for problem in head(*lines).problems]


def test_a_head_is_read_and_the_body_is_what_follows() -> None:
    found, body = split(
        "---\ntitle: Travel\ntype: policy\nvalid_from: 2026-01-01\nvalid_until: '2026-12-31'\n"
        "supersedes: old.md\ndepends_on: [base, rules.md]\n---\nBook trains.\n"
    )
    assert (found.title, found.document_type) == ("Travel", "policy")
    assert (found.valid_from, found.valid_until) == (date(2026, 1, 1), date(2026, 12, 31))
    assert found.supersedes == (("old", 6),)
    assert found.depends_on == (("base", 7), ("rules", 7))
    assert (found.problems, body) == ((), "Book trains.\n")


@pytest.mark.parametrize(
    "text",
    [
        "Only a body.",
        "---\n# A heading between rules\n---\nbody",
        "---\nplain words\n---\nbody",
        "---\n---\nbody",
        "---\ntitle: never closed\nbody",
        "\n---\ntitle: not at the beginning\n---\n",
        "---\n- a\n- list\n---\nbody",
    ],
)
def test_what_is_no_head_is_body(text: str) -> None:
    assert split(text) == (Head(), text)


def test_a_byte_order_mark_and_windows_line_ends_are_tolerated() -> None:
    found, body = split("\ufeff---\r\ntype: note\r\n---\r\nbody")
    assert (found.document_type, body) == ("note", "body")


@pytest.mark.parametrize(
    "written", ["note", "note.md", "[note]", "[[note]]", "'[[note]]'", '"note.md"', "[note.md]"]
)
def test_all_ways_to_write_a_name_are_one_name(written: str) -> None:
    assert head(f"supersedes: {written}").supersedes == (("note", 2),)


@pytest.mark.parametrize("path", ["x/note", "x/note.md", "[[x/note]]"])
def test_a_full_path_stays_a_path(path: str) -> None:
    assert names_of(path) == "x/note"


@pytest.mark.parametrize(
    ("lines", "line", "said"),
    [
        (("type: a", "valid_form: 2026-01-01"), 3, "did you mean `valid_from`?"),
        (("superseded_by: new",), 2, "write `supersedes` in the newer document"),
        (("expires: 2026-01-01",), 2, "write `valid_until`"),
        (("valid_to: 2026-01-01",), 2, "write `valid_until`"),
        (("quite_other: 1",), 2, "`quite_other` is not known"),
        (("type: a", "owner team: x"), 3, "`owner team` is not known"),
        (("type: a", "type: b"), 3, "stands twice"),
        (("supersedes: []",), 2, "must name a document"),
        (("title: [a]",), 2, "must be one line"),
        ((f"type: {'x' * 65}",), 2, "at most 64 characters"),
        (("facts:", "  - {namespace: a, subject: b, predicate: c}"), 3, "lacks `object`"),
        (
            ("facts:", "  - {namespace: a, subject: b, predicate: c, object: d, valid_from: May}"),
            3,
            "`valid_from` that is no day",
        ),
        (
            ("facts:", "  - {namespace: a, subject: b, predicate: c, object: d, sure: yes}"),
            3,
            "`sure`, which is not known",
        ),
        (("relations:", "  - {relation: likes, target: b}"), 3, "a relation needs"),
        (
            ("relations:", "  - {relation: supports, target: b, confidence: 2}"),
            3,
            "from 0 to 1",
        ),
    ],
)
def test_what_can_not_be_read_is_told_with_its_line(
    lines: tuple[str, ...], line: int, said: str
) -> None:
    ((at, message),) = problems(*lines)
    assert at == line
    assert said in message


@pytest.mark.parametrize(
    ("lines", "line"),
    [
        (("type: a", "valid_from: 01.02.2026"), 3),
        (("valid_until: 2026-02-30",), 2),
        (("valid_until:",), 2),
        (("valid_from: 2026-02-01", "valid_until: 2026-01-01"), 1),
        (("type: a", "supersedes: [never closed"), 3),
        (("supersedes: a\x07b",), 2),
        (("supersedes: &a [*a]",), 2),
        (("supersedes: " + "[" * 3000,), 2),
    ],
)
def test_validity_that_can_not_be_read_makes_the_document_invalid(
    lines: tuple[str, ...], line: int
) -> None:
    found = head(*lines)
    assert found.invalid
    assert [problem.line for problem in found.problems] == [line]


def test_facts_and_relations_are_read_whole() -> None:
    found = head(
        "facts:",
        "  - namespace: ops",
        "    subject: pump",
        "    predicate: limit",
        "    object: '7'",
        "    valid_until: 2026-12-31",
        "relations:",
        "  - {relation: supports, target: '[[plan]]', confidence: 0.5}",
    )
    assert found.facts == (
        {
            "namespace": "ops",
            "subject": "pump",
            "predicate": "limit",
            "object": "7",
            "valid_until": "2026-12-31",
        },
    )
    assert found.relations == (("supports", "plan", 0.5, 9),)
    assert found.problems == ()


@given(st.text(alphabet=st.sampled_from("-:[]{}&*!|>'\"#?, \n\x07\u2028ab\t"), max_size=60))
def test_no_text_breaks_the_reader_or_loses_its_body(text: str) -> None:
    _, body = split(f"---\n{text}\n---\nthe body")
    assert body.endswith("the body")
