"""Fitting the logistic rule. The only module that needs scikit-learn."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from sklearn.linear_model import LogisticRegression

from services.calibration.certification import Errors, Targets
from services.calibration.model import CalibrationModel, question_confidence
from services.calibration.reference import area_under_curve
from services.calibration.signals import QUESTION_SIGNALS, Signals

FOLDS = 5
# Fewer leave a fold, of those that choose the threshold, without one of the classes.
MIN_OF_CLASS = 3
# Inverse strength of the regularisation, in units of standardised signals.
INVERSE_STRENGTH = 1.0
# A signal that hardly varies says nothing and would be scaled up to noise.
SMALLEST_SCALE = 1e-6
DIGITS = 9


@dataclass(frozen=True)
class Sample:
    """One labelled question: what was measured of it. Samples of one group are never split over
    folds; an empty group is a group of its own."""

    question: str
    answerable: bool
    signals: Signals
    group: str = ""


@dataclass(frozen=True)
class Fit:
    """A model of all samples, and the errors of models that had not seen the question."""

    model: CalibrationModel
    errors: Errors
    area_under_curve: float
    # Of each sample, out of fold: its confidence, and whether that was enough.
    confidences: tuple[float, ...]
    passed: tuple[bool, ...]


def fit(samples: Sequence[Sample], targets: Targets) -> Fit:
    """Fit on all samples; measure out of fold, with the threshold chosen without the fold, too.

    Raises ValueError when a class has fewer than three samples.
    """
    if min(_count(samples, True), _count(samples, False)) < MIN_OF_CLASS:
        raise ValueError(
            f"a threshold needs at least {MIN_OF_CLASS} answerable and {MIN_OF_CLASS} unanswerable "
            "questions"
        )
    folds = _folds(samples)
    confidences = [0.0] * len(samples)
    passed = [False] * len(samples)
    for fold in sorted(set(folds)):
        inside = [i for i, each in enumerate(folds) if each != fold]
        model = _with_threshold([samples[i] for i in inside], targets)
        for i, each in enumerate(folds):
            if each == fold:
                confidences[i] = question_confidence(model, samples[i].signals)
                passed[i] = confidences[i] >= model.threshold
    return Fit(
        model=_with_threshold(samples, targets),
        errors=count_errors(samples, passed),
        area_under_curve=_area(samples, confidences),
        confidences=tuple(confidences),
        passed=tuple(passed),
    )


def replay(model: CalibrationModel, samples: Sequence[Sample]) -> tuple[Errors, float]:
    """Errors of a fixed model on samples, and the area under its curve."""
    confidences = [question_confidence(model, sample.signals) for sample in samples]
    passed = [confidence >= model.threshold for confidence in confidences]
    return count_errors(samples, passed), _area(samples, confidences)


def count_errors(samples: Sequence[Sample], passed: Sequence[bool]) -> Errors:
    """Both kinds of error."""
    pairs = list(zip(samples, passed, strict=True))
    return Errors(
        answerable=_count(samples, True),
        unanswerable=_count(samples, False),
        false_confirms=sum(is_passed and not sample.answerable for sample, is_passed in pairs),
        false_abstains=sum(sample.answerable and not is_passed for sample, is_passed in pairs),
    )


def choose_threshold(
    confidences: Sequence[float], answerable: Sequence[bool], targets: Targets
) -> float:
    """The confidence at which the worse of both error rates, as a share of its target, is least.

    Between two samples the middle is taken; of equal choices the one in the middle.
    """
    values = sorted(set(confidences))
    middles = ((a + b) / 2 for a, b in itertools.pairwise(values))
    cuts = [values[0], *middles, 1.0]
    good = np.sort([c for c, yes in zip(confidences, answerable, strict=True) if yes])
    bad = np.sort([c for c, yes in zip(confidences, answerable, strict=True) if not yes])

    def worse(cut: float) -> float:
        abstained = float(np.searchsorted(good, cut, side="left")) / max(len(good), 1)
        confirmed = 1.0 - float(np.searchsorted(bad, cut, side="left")) / max(len(bad), 1)
        return max(abstained / targets.false_abstain, confirmed / targets.false_confirm)

    return round(_middle_of_best(cuts, worse), DIGITS)


def _middle_of_best(cuts: Sequence[float], worse: Callable[[float], float]) -> float:
    costs = [worse(cut) for cut in cuts]
    best = [cut for cut, cost in zip(cuts, costs, strict=True) if cost == min(costs)]
    return best[len(best) // 2]


def _with_threshold(samples: Sequence[Sample], targets: Targets) -> CalibrationModel:
    """A model of the samples whose threshold was chosen on out-of-fold confidences."""
    folds = _folds(samples)
    confidences = [0.0] * len(samples)
    for fold in sorted(set(folds)):
        model = _logistic([s for s, each in zip(samples, folds, strict=True) if each != fold])
        for i, each in enumerate(folds):
            if each == fold:
                confidences[i] = question_confidence(model, samples[i].signals)
    answerable = [sample.answerable for sample in samples]
    return replace(_logistic(samples), threshold=choose_threshold(confidences, answerable, targets))


def _logistic(samples: Sequence[Sample]) -> CalibrationModel:
    """Weights of standardised signals; both classes weigh the same in all."""
    names = [name for name in QUESTION_SIGNALS if any(name in s.signals for s in samples)]
    columns = {name: [s.signals[name] for s in samples if name in s.signals] for name in names}
    means = {name: float(np.mean(values)) for name, values in columns.items()}
    scales = {name: float(np.std(values)) for name, values in columns.items()}
    names = [name for name in names if scales[name] > SMALLEST_SCALE]
    if not names:
        # Nothing tells the classes apart.
        return CalibrationModel(rule="logistic", threshold=0.0)
    matrix = np.array(
        [[(s.signals.get(n, means[n]) - means[n]) / scales[n] for n in names] for s in samples]
    )
    regression = LogisticRegression(C=INVERSE_STRENGTH, class_weight="balanced", max_iter=1000)
    regression.fit(matrix, [sample.answerable for sample in samples])
    weights = regression.coef_[0]
    return CalibrationModel(
        rule="logistic",
        threshold=0.0,
        intercept=round(float(regression.intercept_[0]), DIGITS),
        weights={n: round(float(w), DIGITS) for n, w in zip(names, weights, strict=True)},
        means={name: round(means[name], DIGITS) for name in names},
        scales={name: round(scales[name], DIGITS) for name in names},
    )


def _folds(samples: Sequence[Sample]) -> list[int]:
    """The fold of each sample: by group when groups are named, else alike in every run and with
    each class spread evenly."""
    if any(sample.group for sample in samples):
        order = {group: i for i, group in enumerate(sorted({s.group for s in samples}))}
        return [order[sample.group] for sample in samples]
    folds = [0] * len(samples)
    for answerable in (True, False):
        chosen = [i for i, sample in enumerate(samples) if sample.answerable is answerable]
        chosen.sort(key=lambda i: _hash(samples[i].question))
        for position, i in enumerate(chosen):
            folds[i] = position % min(FOLDS, len(chosen))
    return folds


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _count(samples: Sequence[Sample], answerable: bool) -> int:
    return sum(sample.answerable is answerable for sample in samples)


def _area(samples: Sequence[Sample], confidences: Sequence[float]) -> float:
    pairs = list(zip(samples, confidences, strict=True))
    area = area_under_curve(
        [c for sample, c in pairs if sample.answerable],
        [c for sample, c in pairs if not sample.answerable],
    )
    return 0.5 if area is None else area
