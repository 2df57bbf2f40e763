"""The described arithmetic of calibration, by tables."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.calibration import reference
from services.calibration.model import hit_confidences, question_confidence
from services.calibration.reference import (
    area_under_curve,
    certifies,
    fit,
    interval,
    scale,
    threshold,
)
from services.calibration.signals import BEST_COSINE, COSINE

cosines = st.lists(st.floats(-1, 1), min_size=1, max_size=40)


@pytest.mark.parametrize(
    ("answerable", "unanswerable", "expected"),
    [
        # The midpoint, rounded down to 0.001.
        ([0.8], [0.7], 0.75),
        ([0.8], [0.701], 0.75),
        ([0.8], [0.7019], 0.75),
        ([0.8], [0.702], 0.751),
        # A midpoint that is a multiple of 0.001 in decimal stays itself.
        ([0.6], [0.4], 0.5),
        ([0.29], [0.29], 0.29),
        # Overlapping classes still get a midpoint.
        ([0.3], [0.7], 0.5),
        # Of 20 samples one is dropped: the lowest answerable, the highest unanswerable.
        ([0.1] + [0.8] * 19, [0.99] + [0.6] * 19, 0.7),
        # Of 19 none is.
        ([0.1] + [0.8] * 18, [0.9] + [0.6] * 18, 0.5),
        # Only one class, then neither.
        ([0.8019, 0.9], [], 0.801),
        ([], [0.6019, 0.5], 0.602),
        ([], [], 0.5),
        # Down, also below zero.
        ([-0.0005], [], -0.001),
    ],
)
def test_the_threshold_is_the_midpoint_rounded_down(
    answerable: list[float], unanswerable: list[float], expected: float
) -> None:
    assert threshold(answerable, unanswerable) == pytest.approx(expected, abs=1e-9)


@given(cosines, cosines)
def test_the_threshold_never_depends_on_order(answerable: list[float], other: list[float]) -> None:
    assert threshold(answerable, other) == threshold(answerable[::-1], sorted(other))


@pytest.mark.parametrize(
    ("answerable", "unanswerable", "expected"),
    [
        # Inclusive quartiles: 0.825 and 0.375; (0.825 - 0.375) / 4, to 4 digits.
        ([0.8, 0.9], [0.3, 0.4], 0.1125),
        # Never below 0.01, though the classes overlap.
        ([0.5, 0.5], [0.5, 0.5], 0.01),
        ([0.2, 0.3], [0.8, 0.9], 0.01),
        # 0.05 when a class has fewer than two.
        ([0.9], [0.1, 0.2], 0.05),
        ([0.8, 0.9], [0.1], 0.05),
        ([], [], 0.05),
    ],
)
def test_the_scale_is_a_quarter_of_the_gap_between_quartiles(
    answerable: list[float], unanswerable: list[float], expected: float
) -> None:
    assert scale(answerable, unanswerable) == expected


@pytest.mark.parametrize(
    ("answerable", "unanswerable", "expected"),
    [
        ([0.9, 0.8], [0.1, 0.2], 1.0),
        ([0.1, 0.2], [0.9, 0.8], 0.0),
        ([0.5], [0.5], 0.5),
        ([0.5, 0.9], [0.5, 0.1], 0.875),
        ([0.5], [], None),
        ([], [0.5], None),
    ],
)
def test_ties_count_half_in_the_area(
    answerable: list[float], unanswerable: list[float], expected: float | None
) -> None:
    assert area_under_curve(answerable, unanswerable) == expected


@given(cosines, cosines)
def test_the_area_of_swapped_classes_is_the_rest(one: list[float], other: list[float]) -> None:
    area, swapped = area_under_curve(one, other), area_under_curve(other, one)
    assert area is not None
    assert swapped is not None
    assert area + swapped == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("area", "answerable", "unanswerable", "lower", "standard_error"),
    [
        (0.95, 20, 20, 0.879, 0.036),
        (0.95, 50, 50, 0.905, 0.023),
        (0.753, 470, 30, 0.68, 0.037),
        (1.0, 20, 20, 1.0, 0.0),
    ],
)
def test_the_interval_is_that_of_hanley_and_mcneil(
    area: float, answerable: int, unanswerable: int, lower: float, standard_error: float
) -> None:
    found = interval(area, answerable, unanswerable)
    assert round(found.lower, 3) == lower
    assert round(found.standard_error, 3) == standard_error
    assert found.upper <= 1.0


def sample(area: float, each: int) -> tuple[list[float], list[float]]:
    """As many of each class, the answerable above so large a share of the unanswerable."""
    above = round(area * each)
    unanswerable = [0.1] * above + [0.9] * (each - above)
    return [0.5] * each, unanswerable


@pytest.mark.parametrize(
    ("answerable", "unanswerable", "expected"),
    [
        (*sample(0.95, 20), False),
        # 47 and 48 of 50: 0.94 and 0.96.
        (*sample(0.94, 50), False),
        (*sample(0.96, 50), True),
        (*sample(0.95, 200), True),
        # Perfect, and too few, in either class.
        ([0.9] * 19, [0.1] * 20, False),
        ([0.9] * 20, [0.1] * 19, False),
        ([0.9] * 20, [0.1] * 20, True),
        # Overlap is refused at any number.
        ([0.1, 0.9] * 5000, [0.1, 0.9] * 5000, False),
        ([0.9] * 20, [], None),
        ([], [0.1] * 20, None),
        ([], [], None),
    ],
)
def test_the_described_rule_certifies_by_the_lower_end(
    answerable: list[float], unanswerable: list[float], expected: bool | None
) -> None:
    assert certifies(answerable, unanswerable) is expected


def test_the_area_that_is_needed_falls_with_the_labels() -> None:
    wanted = {20: 0.963, 50: 0.947, 100: 0.936, 200: 0.927}
    for each, area in wanted.items():
        assert interval(area + 0.001, each, each).lower >= reference.MIN_AREA
        assert interval(area - 0.001, each, each).lower < reference.MIN_AREA


@pytest.mark.parametrize(
    ("cosine", "expected"),
    [(0.75, 0.5), (0.8, 0.7310585786), (0.7, 0.2689414214), (1e9, 1.0), (-1e9, 8.75651076e-27)],
)
def test_confidence_is_one_half_at_the_threshold_and_clamped(
    cosine: float, expected: float
) -> None:
    model = fit([0.8], [0.7])
    assert (model.threshold, model.cosine_threshold, model.cosine_scale) == (0.5, 0.75, 0.05)
    assert question_confidence(model, {BEST_COSINE: cosine}) == pytest.approx(expected)
    assert hit_confidences(model, {BEST_COSINE: cosine}, [{COSINE: cosine}]) == [
        pytest.approx(expected)
    ]


def test_the_described_rule_knows_nothing_without_a_cosine() -> None:
    model = fit([0.8], [0.7])
    assert question_confidence(model, {"best_coverage": 1.0, "identifier_found": 1.0}) == 0.0
    assert hit_confidences(model, {}, [{"identifiers": 1.0}]) == [0.0]
