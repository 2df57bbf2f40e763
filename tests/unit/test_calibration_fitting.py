"""Fitting: what certifies, what does not, and that it is the same every time."""

from __future__ import annotations

import random

import pytest

from services.calibration.certification import Targets, certify
from services.calibration.fitting import Sample, choose_threshold, count_errors, fit, replay
from services.calibration.model import CalibrationModel
from services.calibration.signals import AUTHOR_MARGIN, BEST_COSINE, BEST_COVERAGE

TARGETS = Targets()


def samples(
    each: int, *, apart: float = 6.0, groups: int = 0, seed: int = 4, unanswerable: int = 0
) -> list[Sample]:
    """Questions whose classes lie so many standard deviations apart in two signals."""
    drawn = random.Random(seed)
    listed = []
    for answerable, count in ((True, each), (False, unanswerable or each)):
        for number in range(count):
            middle = apart if answerable else 0.0
            signals = {
                BEST_COSINE: 0.5 + 0.05 * drawn.gauss(middle, 1.0),
                BEST_COVERAGE: 0.5 + 0.05 * drawn.gauss(middle, 1.0),
                AUTHOR_MARGIN: 0.0,
            }
            group = f"group {number % groups}" if groups else ""
            listed.append(Sample(f"{answerable} {number}", answerable, signals, group))
    return listed


def test_separable_questions_certify_at_thirty_five_of_each() -> None:
    fitted = fit(samples(35), TARGETS)
    assert (fitted.errors.false_confirms, fitted.errors.false_abstains) == (0, 0)
    assert fitted.area_under_curve == 1.0
    assert certify(fitted.errors, TARGETS).is_certified
    assert 0.0 < fitted.model.threshold < 1.0


@pytest.mark.parametrize("each", [3, 4, 10, 20, 28, 29])
def test_a_perfect_small_sample_does_not_certify(each: int) -> None:
    fitted = fit(samples(each, apart=20.0), TARGETS)
    assert fitted.area_under_curve == 1.0
    verdict = certify(fitted.errors, TARGETS)
    assert not verdict.is_certified
    assert verdict.more_answerable >= 30 - each


def test_classes_that_overlap_do_not_certify_at_any_number() -> None:
    fitted = fit(samples(300, apart=0.7), TARGETS)
    assert 0.6 < fitted.area_under_curve < 0.9
    assert not certify(fitted.errors, TARGETS).is_certified


def test_noise_is_not_taken_for_knowledge() -> None:
    # Fitted and measured on the same questions, noise would look like something.
    fitted = fit(samples(40, apart=0.0), TARGETS)
    assert fitted.area_under_curve < 0.65
    assert fitted.errors.false_confirms + fitted.errors.false_abstains > 20


def test_the_same_questions_in_another_order_give_the_same_model() -> None:
    given = samples(40, apart=2.0)
    turned = given[::-1]
    first, second = fit(given, TARGETS), fit(turned, TARGETS)
    assert second.model.threshold == pytest.approx(first.model.threshold, abs=1e-6)
    assert second.model.weights == pytest.approx(first.model.weights, abs=1e-6)
    assert second.errors == first.errors
    assert fit(given, TARGETS) == first


def test_a_signal_that_never_varies_has_no_weight() -> None:
    assert set(fit(samples(35), TARGETS).model.weights) == {BEST_COSINE, BEST_COVERAGE}


def test_a_signal_that_is_missing_somewhere_counts_as_its_mean() -> None:
    given = samples(35)
    holed = [
        Sample(s.question, s.answerable, {BEST_COVERAGE: s.signals[BEST_COVERAGE]})
        if number % 7 == 0
        else s
        for number, s in enumerate(given)
    ]
    fitted = fit(holed, TARGETS)
    assert set(fitted.model.weights) == {BEST_COSINE, BEST_COVERAGE}
    assert fitted.area_under_curve > 0.95


def test_a_group_is_never_on_both_sides() -> None:
    # In each group the class follows another signal: learnt elsewhere it says nothing here.
    own = (BEST_COSINE, BEST_COVERAGE, AUTHOR_MARGIN)
    given = [
        Sample(
            f"{name} {number}",
            number % 2 == 0,
            {BEST_COSINE: 0.0, BEST_COVERAGE: 0.0} | {name: float(number % 2 == 0)},
            name,
        )
        for name in own
        for number in range(40)
    ]
    grouped = fit(given, TARGETS)
    mixed = fit([Sample(s.question, s.answerable, s.signals) for s in given], TARGETS)
    assert mixed.area_under_curve == 1.0
    assert grouped.area_under_curve < mixed.area_under_curve


@pytest.mark.parametrize(("answerable", "unanswerable"), [(0, 40), (40, 0), (2, 40), (40, 2)])
def test_three_of_each_class_are_the_least(answerable: int, unanswerable: int) -> None:
    both = samples(40)
    given = [*both[:answerable], *both[40 : 40 + unanswerable]]
    with pytest.raises(ValueError, match="at least 3 answerable and 3 unanswerable"):
        fit(given, TARGETS)


@pytest.mark.parametrize(
    ("answerable", "unanswerable", "expected"),
    [
        # Between the classes, in the middle.
        ([0.8, 0.9], [0.1, 0.2], 0.5),
        # The costlier error decides: one of two abstained is as bad as one of two confirmed.
        ([0.4, 0.9], [0.1, 0.2], 0.3),
        # Alike in both classes: somewhere, and not outside what was seen.
        ([0.5], [0.5], 1.0),
    ],
)
def test_the_threshold_lies_where_the_worse_error_is_least(
    answerable: list[float], unanswerable: list[float], expected: float
) -> None:
    confidences = [*answerable, *unanswerable]
    labels = [True] * len(answerable) + [False] * len(unanswerable)
    assert choose_threshold(confidences, labels, TARGETS) == pytest.approx(expected)


def test_a_target_that_is_looser_moves_the_threshold_its_way() -> None:
    given = samples(100, apart=1.5)
    low = fit(given, Targets(false_confirm=0.5, false_abstain=0.05))
    high = fit(given, Targets(false_confirm=0.05, false_abstain=0.5))
    assert low.errors.false_abstains < high.errors.false_abstains
    assert low.errors.false_confirms > high.errors.false_confirms


def test_a_replay_counts_the_errors_of_a_fixed_model() -> None:
    model = CalibrationModel("reference", 0.5, cosine_threshold=0.5, cosine_scale=0.1)
    given = [
        Sample("a", True, {BEST_COSINE: 0.5}),
        Sample("b", True, {BEST_COSINE: 0.49}),
        Sample("c", False, {BEST_COSINE: 0.5}),
        Sample("d", False, {}),
    ]
    errors, area = replay(model, given)
    assert (errors.false_abstains, errors.false_confirms) == (1, 1)
    # (0.5 against 0.5, 0; 0.49 against 0.5, 0): 0.5 + 1 + 0 + 1, of 4.
    assert area == 0.625
    assert errors == count_errors(given, [True, False, True, False])


def test_questions_that_measure_alike_do_not_certify() -> None:
    given = [Sample(str(number), number % 2 == 0, {BEST_COSINE: 0.5}) for number in range(80)]
    fitted = fit(given, TARGETS)
    assert fitted.area_under_curve == 0.5
    assert not certify(fitted.errors, TARGETS).is_certified
