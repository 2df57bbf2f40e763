"""Figures of one ranking against labels. Ranks count from 0, rankings hold each message once.

``relevant`` is a set of message ids; ``grades`` gives 2 to a message that states the answer and 1
to one that supports it. All figures lie between 0 and 1 and are to be averaged over questions
that have evidence.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence


def recall_at(ranking: Sequence[str], relevant: Collection[str], count: int) -> float:
    """Share of the relevant messages that stand among the first ``count``."""
    return len(set(ranking[:count]) & set(relevant)) / len(set(relevant))


def hit_at(ranking: Sequence[str], relevant: Collection[str], count: int) -> float:
    """1 when any relevant message stands among the first ``count``, else 0."""
    return float(any(message_id in relevant for message_id in ranking[:count]))


def reciprocal_rank(ranking: Sequence[str], relevant: Collection[str]) -> float:
    """1 / (rank + 1) of the first relevant message; 0 when the ranking holds none."""
    for rank, message_id in enumerate(ranking):
        if message_id in relevant:
            return 1 / (rank + 1)
    return 0.0


def ndcg_at(ranking: Sequence[str], grades: Mapping[str, int], count: int) -> float:
    """Normalised discounted cumulative gain of the first ``count``.

    Gain 2^grade - 1, discount log2(rank + 2) (C. Burges et al.: Learning to rank using gradient
    descent, ICML 2005), divided by that of the best possible order.
    """
    best = _discounted(sorted(grades.values(), reverse=True)[:count])
    return _discounted([grades.get(message_id, 0) for message_id in ranking[:count]]) / best


def mean(values: Iterable[float]) -> float:
    """The arithmetic mean; NaN of nothing, so that no figure is made up."""
    listed = list(values)
    return math.fsum(listed) / len(listed) if listed else math.nan


def _discounted(grades: Sequence[int]) -> float:
    return sum((math.exp2(grade) - 1) / math.log2(rank + 2) for rank, grade in enumerate(grades))
