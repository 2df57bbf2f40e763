"""When a threshold may be published: exact bounds of both error rates below their targets.

The bound is the one-sided 95 % upper limit of Clopper and Pearson (Biometrika 26 (1934), 404-413):
the rate at which so few errors would be seen one time in twenty.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from scipy.stats import beta

CONFIDENCE = 0.95
MIN_LABELS = 30
DEFAULT_TARGET = 0.10
# Certification would need more than this: saying a number helps nobody.
MAX_LABELS = 100_000
NOT_BY_LABELS = -1


@dataclass(frozen=True)
class Targets:
    """What the two bounds must stay at or below."""

    false_confirm: float = DEFAULT_TARGET
    false_abstain: float = DEFAULT_TARGET


@dataclass(frozen=True)
class Errors:
    """Out-of-fold errors at a threshold."""

    answerable: int
    unanswerable: int
    false_confirms: int
    false_abstains: int

    @property
    def false_confirm_bound(self) -> float:
        """Upper bound of the share of unanswerable questions that pass."""
        return upper_bound(self.false_confirms, self.unanswerable)

    @property
    def false_abstain_bound(self) -> float:
        """Upper bound of the share of answerable questions that do not."""
        return upper_bound(self.false_abstains, self.answerable)


@dataclass(frozen=True)
class Verdict:
    """Whether a threshold certifies; why not; and how many more labels of each class would do it at
    the error rate seen (-1: none would)."""

    is_certified: bool
    reason: str
    more_answerable: int
    more_unanswerable: int


def upper_bound(errors: int, trials: int) -> float:
    """The rate that is exceeded with 5 % risk at most; 1 without trials."""
    if trials <= 0 or errors >= trials:
        return 1.0
    return float(beta.ppf(CONFIDENCE, errors + 1, trials - errors))


def labels_needed(errors: int, trials: int, target: float) -> int:
    """Labels of a class that the bound needs at the error rate seen; -1 when none are enough."""
    rate = errors / trials if trials else 0.0
    low, high = max(MIN_LABELS, trials), MAX_LABELS
    if upper_bound(math.ceil(rate * high), high) > target:
        return NOT_BY_LABELS
    while low < high:
        middle = (low + high) // 2
        if upper_bound(math.ceil(rate * middle), middle) <= target:
            high = middle
        else:
            low = middle + 1
    return low


def certify(errors: Errors, targets: Targets) -> Verdict:
    """Compare both bounds with their targets; at least 30 labels of each class are needed."""
    faults = [
        *_too_few("answerable", errors.answerable),
        *_too_few("unanswerable", errors.unanswerable),
        *_too_high("false-confirm", errors.false_confirm_bound, targets.false_confirm),
        *_too_high("false-abstain", errors.false_abstain_bound, targets.false_abstain),
    ]
    return Verdict(
        is_certified=not faults,
        reason="; ".join(faults),
        more_answerable=_more(errors.false_abstains, errors.answerable, targets.false_abstain),
        more_unanswerable=_more(errors.false_confirms, errors.unanswerable, targets.false_confirm),
    )


def _too_few(name: str, labels: int) -> list[str]:
    if labels >= MIN_LABELS:
        return []
    return [f"{labels} {name} questions are labelled; at least {MIN_LABELS} are needed"]


def _too_high(name: str, bound: float, target: float) -> list[str]:
    if bound <= target:
        return []
    return [f"the {name} rate may be up to {bound:.3f}, more than the target {target:.3f}"]


def _more(errors: int, trials: int, target: float) -> int:
    if trials >= MIN_LABELS and upper_bound(errors, trials) <= target:
        return 0
    needed = labels_needed(errors, trials, target)
    return needed if needed == NOT_BY_LABELS else max(0, needed - trials)
