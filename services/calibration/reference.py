"""The described calibration: best cosine per question, to the letter.

Source: RE-call's observed behaviour, calibration, steps 1 to 6 (version 0.13 and later). Its
Hanley and McNeil interval: Radiology 143 (1982), 29-36.
"""

from __future__ import annotations

import bisect
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from services.calibration.model import CalibrationModel

MIN_SAMPLES = 20
MIN_AREA = 0.90
STEPS = 1000
Z = 1.96
FALLBACK_SCALE = 0.05
SMALLEST_SCALE = 0.01
NOTHING_KNOWN = 0.5


@dataclass(frozen=True)
class Interval:
    """An area under the curve and its 95 % interval, clamped to 0..1."""

    area: float
    lower: float
    upper: float
    standard_error: float


def threshold(answerable: Sequence[float], unanswerable: Sequence[float]) -> float:
    """Cosine: the midpoint of the 5 % quantile of ``answerable`` and the 95 % quantile of
    ``unanswerable``, rounded down to 0.001.

    Only one class: its own quantile (one step above it for unanswerable). Neither: 0.5.
    """
    low = _low_quantile(answerable)
    high = _high_quantile(unanswerable)
    if low is None and high is None:
        return NOTHING_KNOWN
    if high is None:
        assert low is not None
        return _rounded_down(low)
    if low is None:
        return _rounded_down(high) + 1 / STEPS
    return _rounded_down((low + high) / 2)


def scale(answerable: Sequence[float], unanswerable: Sequence[float]) -> float:
    """Cosine per logit: a quarter of the distance between the inner quartiles, 0.01 at least;
    0.05 when a class has fewer than two samples. Rounded to 4 digits."""
    if len(answerable) < 2 or len(unanswerable) < 2:
        return FALLBACK_SCALE
    lower = statistics.quantiles(answerable, n=4, method="inclusive")[0]
    upper = statistics.quantiles(unanswerable, n=4, method="inclusive")[2]
    return round(max((lower - upper) / 4, SMALLEST_SCALE), 4)


def area_under_curve(answerable: Sequence[float], unanswerable: Sequence[float]) -> float | None:
    """P(A > U) + 0.5 P(A = U); None when a class is missing."""
    if not answerable or not unanswerable:
        return None
    ordered = sorted(unanswerable)
    wins = math.fsum(_wins(value, ordered) for value in answerable)
    return wins / (len(answerable) * len(unanswerable))


def interval(area: float, answerable: int, unanswerable: int) -> Interval:
    """Hanley and McNeil's 95 % interval of an area measured on so many samples of each class."""
    q1 = area / (2 - area)
    q2 = 2 * area**2 / (1 + area)
    variance = (
        area * (1 - area) + (answerable - 1) * (q1 - area**2) + (unanswerable - 1) * (q2 - area**2)
    ) / (answerable * unanswerable)
    error = math.sqrt(max(variance, 0.0))
    return Interval(area, max(0.0, area - Z * error), min(1.0, area + Z * error), error)


def certifies(answerable: Sequence[float], unanswerable: Sequence[float]) -> bool | None:
    """At least 20 samples a class and the interval's lower end at least 0.90; None when a class is
    missing."""
    area = area_under_curve(answerable, unanswerable)
    if area is None:
        return None
    enough = min(len(answerable), len(unanswerable)) >= MIN_SAMPLES
    return enough and interval(area, len(answerable), len(unanswerable)).lower >= MIN_AREA


def fit(answerable: Sequence[float], unanswerable: Sequence[float]) -> CalibrationModel:
    """The model of best cosines. Its threshold is the confidence 0.5: the cosine threshold."""
    return CalibrationModel(
        rule="reference",
        threshold=0.5,
        cosine_threshold=threshold(answerable, unanswerable),
        cosine_scale=scale(answerable, unanswerable),
    )


def _low_quantile(values: Sequence[float]) -> float | None:
    return sorted(values)[math.floor(0.05 * len(values))] if values else None


def _high_quantile(values: Sequence[float]) -> float | None:
    # As many are dropped from the top as the other quantile drops from the bottom.
    return sorted(values)[len(values) - 1 - math.floor(0.05 * len(values))] if values else None


def _rounded_down(value: float) -> float:
    # A value that is a multiple of 0.001 in decimal stays itself.
    return math.floor(round(value * STEPS, 9)) / STEPS


def _wins(value: float, ordered: Sequence[float]) -> float:
    below = bisect.bisect_left(ordered, value)
    return below + (bisect.bisect_right(ordered, value) - below) / 2
