"""Ids out of records become keys, whatever their length."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.corpus import encode_part
from services.ingest.identifiers import MAX_ENCODED_CHARACTERS, storable_id


@pytest.mark.parametrize(
    ("text", "wanted"),
    [("C1", "C1"), (" ops\0 ", "ops"), ("a" * 400, "a" * 400), ("東京", "東京")],
)
def test_an_id_of_ordinary_length_stays_as_it_is(text: str, wanted: str) -> None:
    assert storable_id(text) == wanted


@given(st.text(min_size=30, max_size=30), st.integers(14, 500))
def test_any_id_fits_a_key_and_stays_the_same_when_read_again(text: str, times: int) -> None:
    made = storable_id(text * times)
    assert len(encode_part(made)) <= MAX_ENCODED_CHARACTERS
    assert storable_id(made) == made


def test_long_ids_that_differ_only_at_their_end_stay_apart() -> None:
    assert storable_id("a" * 5_000 + "b") != storable_id("a" * 5_000 + "c")
