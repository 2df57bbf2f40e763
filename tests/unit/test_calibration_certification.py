"""Which error rates certify: exact bounds, by tables and properties."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from services.calibration.certification import (
    MIN_LABELS,
    NOT_BY_LABELS,
    Errors,
    Targets,
    certify,
    labels_needed,
    upper_bound,
)

counts = st.integers(1, 400).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


@pytest.mark.parametrize(
    ("errors", "trials", "expected"),
    [
        # 1 - 0.05 ** (1 / n) when nothing went wrong.
        (0, 28, 0.1015),
        (0, 29, 0.0981),
        (0, 20, 0.1391),
        (0, 30, 0.0950),
        (1, 46, 0.0990),
        (1, 45, 0.1011),
        # Nothing is known, or everything went wrong.
        (0, 0, 1.0),
        (7, 7, 1.0),
        (237, 237, 1.0),
    ],
)
def test_the_bound_is_exact(errors: int, trials: int, expected: float) -> None:
    assert round(upper_bound(errors, trials), 4) == expected


@given(counts)
def test_at_the_bound_so_few_errors_come_once_in_twenty(counted: tuple[int, int]) -> None:
    errors, trials = counted
    bound = upper_bound(errors, trials)
    if errors < trials:
        assert float(binom.cdf(errors, trials, bound)) == pytest.approx(0.05, abs=1e-6)
    assert bound > errors / trials or bound == 1.0


@given(counts)
def test_more_errors_raise_the_bound_and_more_trials_lower_it(counted: tuple[int, int]) -> None:
    errors, trials = counted
    assert upper_bound(errors, trials + 1) <= upper_bound(errors, trials)
    assert upper_bound(errors + 1, trials + 1) >= upper_bound(errors, trials + 1)


def perfect(each: int) -> Errors:
    return Errors(each, each, 0, 0)


def test_twenty_nine_perfect_labels_would_do_and_thirty_are_asked_for() -> None:
    assert perfect(29).false_confirm_bound <= 0.10 < perfect(28).false_confirm_bound
    assert not certify(perfect(29), Targets()).is_certified
    assert certify(perfect(30), Targets()).is_certified
    told = certify(perfect(29), Targets())
    assert told.reason == (
        "29 answerable questions are labelled; at least 30 are needed; "
        "29 unanswerable questions are labelled; at least 30 are needed"
    )
    assert (told.more_answerable, told.more_unanswerable) == (1, 1)


@pytest.mark.parametrize(
    ("errors", "is_certified", "named"),
    [
        (Errors(46, 46, 1, 1), True, ""),
        (Errors(45, 46, 1, 1), False, "false-abstain"),
        (Errors(46, 45, 1, 1), False, "false-confirm"),
        (Errors(1000, 20, 0, 0), False, "unanswerable"),
        (Errors(20, 1000, 0, 0), False, "20 answerable"),
        (Errors(0, 0, 0, 0), False, "0 answerable"),
    ],
)
def test_both_bounds_must_hold(errors: Errors, is_certified: bool, named: str) -> None:
    verdict = certify(errors, Targets())
    assert verdict.is_certified is is_certified
    assert named in verdict.reason
    assert bool(verdict.reason) is not is_certified


def test_a_workspace_may_ask_for_less_or_more() -> None:
    errors = Errors(100, 100, 15, 2)
    assert not certify(errors, Targets()).is_certified
    assert certify(errors, Targets(false_confirm=0.25)).is_certified
    assert not certify(errors, Targets(false_confirm=0.25, false_abstain=0.05)).is_certified
    # Fewer than the floor never do, whatever the target.
    assert not certify(perfect(29), Targets(0.9, 0.9)).is_certified


def test_the_defaults_refuse_error_rates_such_as_two_party_chat_shows() -> None:
    # 709 answerable and 237 adversarial questions; the best threshold fails about every third.
    verdict = certify(Errors(709, 237, 71, 213), Targets())
    assert not verdict.is_certified
    assert "false-confirm" in verdict.reason
    assert "false-abstain" in verdict.reason
    assert (verdict.more_answerable, verdict.more_unanswerable) == (NOT_BY_LABELS, NOT_BY_LABELS)


@pytest.mark.parametrize(
    ("errors", "trials", "target", "expected"),
    [
        (0, 0, 0.10, 30),
        (0, 10, 0.10, 30),
        (0, 0, 0.05, 59),
        (0, 35, 0.10, 35),
        # One in ten is the target itself: no number of labels shows that it is below.
        (3, 30, 0.10, NOT_BY_LABELS),
        (10, 30, 0.10, NOT_BY_LABELS),
    ],
)
def test_how_many_labels_are_needed(errors: int, trials: int, target: float, expected: int) -> None:
    assert labels_needed(errors, trials, target) == expected


@given(counts)
def test_the_labels_needed_are_enough_at_the_rate_seen(counted: tuple[int, int]) -> None:
    errors, trials = counted
    needed = labels_needed(errors, trials, 0.10)
    if needed == NOT_BY_LABELS:
        assert errors / trials > 0.09
    else:
        assert needed >= max(MIN_LABELS, trials)
        assert upper_bound(math.ceil(errors / trials * needed), needed) <= 0.10
