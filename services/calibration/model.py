"""A published threshold and the confidence that it stands on."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from services.calibration import signals as names
from services.calibration.signals import Signals

Rule = Literal["logistic", "reference"]
# exp() of more says nothing new and may overflow.
MAX_LOGIT = 60.0
SCHEMA = 1


class ModelError(ValueError):
    """A stored model can not be used; the message says why."""


@dataclass(frozen=True)
class CalibrationModel:
    """What a search needs to judge: confidence from signals, and the confidence that is enough.

    Rule ``logistic``: confidence = sigmoid(intercept + sum of weight * (signal - mean) / scale); a
    signal that could not be measured counts as its mean. ``threshold`` is a confidence.

    Rule ``reference``: confidence = sigmoid((best cosine - cosine_threshold) / cosine_scale), so
    the threshold is 0.5 whatever the cosine (observed behaviour of RE-call).

    ``support_floor`` (0 to 1) is the least support, relative to the best hit's, of a hit that may
    be evidence for a question that is confident enough.
    """

    rule: Rule
    threshold: float
    intercept: float = 0.0
    weights: Mapping[str, float] = field(default_factory=dict)
    means: Mapping[str, float] = field(default_factory=dict)
    scales: Mapping[str, float] = field(default_factory=dict)
    cosine_threshold: float = 0.0
    cosine_scale: float = 1.0
    support_floor: float = 0.0


def contributions(model: CalibrationModel, signals: Signals) -> dict[str, float]:
    """What each signal adds to the confidence, in logits."""
    if model.rule == "reference":
        cosine = signals.get(names.BEST_COSINE)
        return {} if cosine is None else {names.BEST_COSINE: _cosine_logit(model, cosine)}
    return {
        name: weight * (signals[name] - model.means[name]) / model.scales[name]
        for name, weight in model.weights.items()
        if name in signals
    }


def question_confidence(model: CalibrationModel, signals: Signals) -> float:
    """Confidence (0 to 1) that what was found answers the question.

    An exact identifier of the question that the lexical arm found verbatim is enough to pass under
    the logistic rule, however low the cosine; certification counts the errors of that, too. Without
    any hit the confidence is 0.
    """
    if names.BEST_COSINE not in signals and names.BEST_COVERAGE not in signals:
        return 0.0
    if model.rule == "reference" and names.BEST_COSINE not in signals:
        return 0.0
    confidence = sigmoid(model.intercept + math.fsum(contributions(model, signals).values()))
    if model.rule == "logistic" and signals.get(names.IDENTIFIER_FOUND, 0.0) >= 1.0:
        return max(confidence, model.threshold)
    return confidence


def hit_confidences(
    model: CalibrationModel, signals: Signals, hits: Sequence[Signals]
) -> list[float]:
    """Confidence (0 to 1) of each hit: the question's for the hit with the best support.

    Under the logistic rule support is the confidence that the question would have if this hit were
    the best one. Relative to the best support, a hit at or above ``support_floor`` reaches the
    threshold whenever the question does; one below never does. Under the reference rule a hit's
    confidence is its own cosine's.
    """
    if model.rule == "reference":
        return [_reference_confidence(model, hit) for hit in hits]
    supports = [support(model, signals, hit) for hit in hits]
    best = max(supports, default=0.0)
    confidence = question_confidence(model, signals)
    return [_shared(model, confidence, each / best if best else 1.0) for each in supports]


def support(model: CalibrationModel, signals: Signals, hit: Signals) -> float:
    """Confidence that the question would have if this hit were the best one."""
    as_best = {**signals}
    for of_question, of_hit in (
        (names.BEST_COSINE, names.COSINE),
        (names.BEST_COVERAGE, names.COVERAGE),
    ):
        if of_hit in hit:
            as_best[of_question] = hit[of_hit]
    if signals.get(names.AUTHOR_NAMED) and not hit.get(names.BY_NAMED_AUTHOR):
        as_best[names.AUTHOR_MARGIN] = min(0.0, signals.get(names.AUTHOR_MARGIN, 0.0))
        as_best[names.AUTHOR_SHARE] = 0.0
    found = hit.get(names.IDENTIFIERS, 0.0)
    as_best[names.IDENTIFIER_FOUND] = found
    raised = sigmoid(model.intercept + math.fsum(contributions(model, as_best).values()))
    return max(raised, model.threshold) if found >= 1.0 else raised


def is_enough(model: CalibrationModel, confidence: float) -> bool:
    """Whether a confidence is at or above the threshold."""
    return confidence >= model.threshold


def sigmoid(logit: float) -> float:
    """1 / (1 + exp(-logit)), its argument clamped to +-60."""
    return 1.0 / (1.0 + math.exp(-max(-MAX_LOGIT, min(MAX_LOGIT, logit))))


def to_json(model: CalibrationModel) -> dict[str, Any]:
    """The model as it is stored."""
    return {
        "schema": SCHEMA,
        "rule": model.rule,
        "threshold": model.threshold,
        "intercept": model.intercept,
        "weights": dict(model.weights),
        "means": dict(model.means),
        "scales": dict(model.scales),
        "cosine_threshold": model.cosine_threshold,
        "cosine_scale": model.cosine_scale,
        "support_floor": model.support_floor,
    }


def from_json(stored: Mapping[str, Any]) -> CalibrationModel:
    """The model of a stored form. Raises ModelError."""
    if stored.get("schema") != SCHEMA:
        raise ModelError(f"schema {stored.get('schema')!r} is not {SCHEMA}")
    try:
        return CalibrationModel(
            rule=stored["rule"],
            threshold=float(stored["threshold"]),
            intercept=float(stored["intercept"]),
            weights=_numbers(stored["weights"]),
            means=_numbers(stored["means"]),
            scales=_numbers(stored["scales"]),
            cosine_threshold=float(stored["cosine_threshold"]),
            cosine_scale=float(stored["cosine_scale"]),
            support_floor=float(stored["support_floor"]),
        )
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ModelError(f"{type(error).__name__}: {error}") from None


def is_readable(stored: Mapping[str, Any]) -> bool:
    """Whether a stored form can be used."""
    try:
        from_json(stored)
    except ModelError:
        return False
    return True


def digest(stored: Mapping[str, Any]) -> str:
    """SHA-256 (hex) of a stored form: keys sorted, no white space."""
    canonical = json.dumps(stored, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()


def _shared(model: CalibrationModel, confidence: float, relative: float) -> float:
    threshold, floor = model.threshold, model.support_floor
    if confidence < threshold:
        return confidence * relative
    if relative >= floor:
        above = (relative - floor) / (1.0 - floor) if floor < 1.0 else 1.0
        return threshold + (confidence - threshold) * above
    return threshold * relative / floor


def _reference_confidence(model: CalibrationModel, hit: Signals) -> float:
    cosine = hit.get(names.COSINE)
    return 0.0 if cosine is None else sigmoid(_cosine_logit(model, cosine))


def _cosine_logit(model: CalibrationModel, cosine: float) -> float:
    return (cosine - model.cosine_threshold) / model.cosine_scale


def _numbers(stored: Mapping[str, Any]) -> dict[str, float]:
    return {str(name): float(value) for name, value in stored.items()}
