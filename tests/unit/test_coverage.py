"""Term coverage: rare words weigh more, and the share is honest at its ends."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from services.retrieve.coverage import term_coverage


def test_a_question_without_words_has_no_coverage() -> None:
    assert term_coverage(["x"], {}, 10) is None


def test_a_rare_word_weighs_more_than_a_common_one() -> None:
    counts = {"28p01": 1, "command": 90}
    rare, common = (term_coverage([word], counts, 100) for word in counts)
    assert rare is not None and common is not None
    assert rare > 0.9 > 0.1 > common


def test_a_word_that_nobody_wrote_leaves_the_largest_gap() -> None:
    covered = term_coverage(["command"], {"command": 5, "zeppelin": 0}, 100)
    assert covered is not None
    assert covered < 0.5


@given(
    st.dictionaries(st.text(min_size=1), st.integers(0, 50), min_size=1, max_size=20),
    st.sets(st.text(min_size=1)),
)
def test_coverage_is_a_share_and_all_words_cover_everything(
    counts: dict[str, int], words: set[str]
) -> None:
    share = term_coverage(words, counts, 50)
    assert share is not None
    assert 0 <= share <= 1
    assert term_coverage(set(counts), counts, 50) == 1
    assert term_coverage((), counts, 50) == 0
