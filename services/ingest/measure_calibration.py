"""The arithmetic of a calibration, in a process of its own.

The fitting library is large, and what serves imports must stay small: so it is imported only where
it runs, inside the functions.
"""

from __future__ import annotations

import asyncio
import multiprocessing
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

from services.calibration.model import CalibrationModel
from services.calibration.signals import BEST_COSINE, Signals

T = TypeVar("T")


@dataclass(frozen=True)
class Measurement:
    """What one sample measured: ``signals`` of the question, raw."""

    question: str
    answerable: bool
    signals: Signals


@dataclass(frozen=True)
class Rates:
    """Errors at a threshold, with their bounds."""

    answerable: int
    unanswerable: int
    false_confirms: int
    false_abstains: int
    false_confirm_bound: float
    false_abstain_bound: float
    area_under_curve: float


@dataclass(frozen=True)
class Certification:
    """A model, the errors that were measured of it, and whether they are few enough."""

    model: CalibrationModel
    rates: Rates
    is_certified: bool
    reason: str
    more_answerable: int
    more_unanswerable: int


@dataclass(frozen=True)
class Goal:
    """Targets of both bounds."""

    false_confirm: float
    false_abstain: float


async def apart(work: Callable[..., T], *given: object) -> T:
    """Run pure work in a fresh process and wait for it."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        return await asyncio.get_running_loop().run_in_executor(pool, work, *given)


def fit_logistic(measured: Sequence[Measurement], goal: Goal) -> Certification:
    """Fit, measure out of fold, certify. Raises ValueError for too few labels to fit at all."""
    from services.calibration import fitting
    from services.calibration.certification import Targets

    fitted = fitting.fit(_samples(measured), Targets(goal.false_confirm, goal.false_abstain))
    return _certified(fitted.model, fitted.errors, fitted.area_under_curve, goal)


def replay(model: CalibrationModel, measured: Sequence[Measurement], goal: Goal) -> Certification:
    """Measure a fixed model on samples."""
    from services.calibration import fitting

    errors, area = fitting.replay(model, _samples(measured))
    return _certified(model, errors, area, goal)


def fit_reference(measured: Sequence[Measurement], goal: Goal) -> Certification:
    """The described rule: certified by the area under the curve; the bounds are told beside."""
    from services.calibration import fitting, reference

    answerable = [m.signals.get(BEST_COSINE, 0.0) for m in measured if m.answerable]
    unanswerable = [m.signals.get(BEST_COSINE, 0.0) for m in measured if not m.answerable]
    model = reference.fit(answerable, unanswerable)
    errors, area = fitting.replay(model, _samples(measured))
    told = _certified(model, errors, area, goal)
    certifies = reference.certifies(answerable, unanswerable)
    return Certification(
        model=model,
        rates=told.rates,
        is_certified=certifies is True,
        reason="" if certifies else _why_not(answerable, unanswerable),
        more_answerable=max(0, reference.MIN_SAMPLES - len(answerable)),
        more_unanswerable=max(0, reference.MIN_SAMPLES - len(unanswerable)),
    )


def _why_not(answerable: Sequence[float], unanswerable: Sequence[float]) -> str:
    from services.calibration import reference

    area = reference.area_under_curve(answerable, unanswerable)
    if area is None:
        return "only one class of questions is labelled"
    if min(len(answerable), len(unanswerable)) < reference.MIN_SAMPLES:
        return (
            f"{len(answerable)} answerable and {len(unanswerable)} unanswerable questions are "
            f"labelled; at least {reference.MIN_SAMPLES} of each are needed"
        )
    lower = reference.interval(area, len(answerable), len(unanswerable)).lower
    return (
        f"the area under the curve is {area:.3f}, at least {lower:.3f} with 95 % confidence; "
        f"{reference.MIN_AREA:.2f} is needed"
    )


def _samples(measured: Sequence[Measurement]) -> list[Any]:
    from services.calibration.fitting import Sample

    return [Sample(m.question, m.answerable, m.signals) for m in measured]


def _certified(model: CalibrationModel, errors: Any, area: float, goal: Goal) -> Certification:
    from services.calibration.certification import Targets, certify

    verdict = certify(errors, Targets(goal.false_confirm, goal.false_abstain))
    return Certification(
        model=model,
        rates=Rates(
            errors.answerable,
            errors.unanswerable,
            errors.false_confirms,
            errors.false_abstains,
            errors.false_confirm_bound,
            errors.false_abstain_bound,
            area,
        ),
        is_certified=verdict.is_certified,
        reason=verdict.reason,
        more_answerable=verdict.more_answerable,
        more_unanswerable=verdict.more_unanswerable,
    )
