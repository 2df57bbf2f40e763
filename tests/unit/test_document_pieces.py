"""How a document is cut, and what names its pieces."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.corpus import document_message_id
from services.ingest.document_chunking import MAX_CHARACTERS, chunk_id, pieces, render


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        (" \n\n \n", []),
        ("one", ["one"]),
        ("one\n\ntwo", ["one\n\ntwo"]),
        ("one\n \ntwo", ["one\n\ntwo"]),
        (f"{'a' * 500}\n\n{'b' * 500}", ["a" * 500, "b" * 500]),
        (f"{'a' * 500}\n\n{'b' * 298}", [f"{'a' * 500}\n\n{'b' * 298}"]),
    ],
)
def test_paragraphs_are_packed_to_800_characters(text: str, expected: list[str]) -> None:
    assert pieces(text) == expected


def test_a_long_paragraph_is_cut_at_spaces_and_repeats_its_seam() -> None:
    words = [f"word{number:03}" for number in range(300)]
    found = pieces(" ".join(words))
    assert all(len(piece) <= MAX_CHARACTERS for piece in found)
    assert all(set(piece.split()) <= set(words) for piece in found)
    assert set(" ".join(found).split()) == set(words)
    for earlier, later in pairwise(found):
        assert later.split()[0] in earlier.split()[-12:]


@given(st.text(alphabet=st.sampled_from("ab \n"), max_size=4000))
def test_no_character_but_white_space_is_lost_and_no_piece_is_too_long(text: str) -> None:
    found = pieces(text)
    assert all(0 < len(piece) <= MAX_CHARACTERS for piece in found)
    rest = "".join(found).replace("\n", "").replace(" ", "")
    for letter in "ab":
        assert rest.count(letter) >= text.count(letter)


def test_a_piece_is_indexed_with_its_path_and_named_by_its_place() -> None:
    assert render("hr/travel.md", "Book trains") == "[hr/travel.md] Book trains"
    name = document_message_id("hand book", "a#b:c.md", 2)
    assert name == "document:hand%20book:a%23b%3Ac.md#2"
    assert chunk_id(name) == chunk_id(name) != chunk_id(document_message_id("x", "y", 1))
