"""One arm alone against both, from the two lists that an explained search carries.

The order is computed here from the candidates' ranks, by the published rule and not by the code
that serves: a chunk at ``rank`` (from 0) adds 1 / (rank + 10) to every message it contains. Equal
scores: the better best rank first, then the newer message, then the smaller id.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np

RANK_CONSTANT = 10
RESAMPLES = 10_000
SEED = 20_261_130
CONFIDENCE = 0.95

# One arm's list: the message ids of each chunk, best chunk first.
ArmList = Sequence[Sequence[str]]


@dataclass(frozen=True)
class Interval:
    """A mean difference with its 95 % bootstrap interval over questions."""

    difference: float
    low: float
    high: float


def message_order(lists: Iterable[ArmList], posted_at: Mapping[str, datetime]) -> list[str]:
    """All messages of the lists, best first; one list gives the order of that arm alone."""
    ranks: dict[str, list[int]] = {}
    for arm in lists:
        for rank, chunk in enumerate(arm):
            for message_id in dict.fromkeys(chunk):
                ranks.setdefault(message_id, []).append(rank)

    def key(message_id: str) -> tuple[float, int, float, str]:
        score = math.fsum(1 / (rank + RANK_CONSTANT) for rank in ranks[message_id])
        newest_first = -posted_at[message_id].timestamp()
        return -score, min(ranks[message_id]), newest_first, message_id

    return sorted(ranks, key=key)


def paired_interval(left: Sequence[float], right: Sequence[float]) -> Interval:
    """left - right, question by question, with a percentile bootstrap over questions.

    The interval speaks of other questions of the same kind on the same messages, not of another
    workspace. Raises ValueError when the two were not measured on the same, non-empty questions.
    """
    if len(left) != len(right) or not left:
        raise ValueError("both sides need the same questions, at least one")
    differences = np.asarray(left) - np.asarray(right)
    rng = np.random.default_rng(SEED)
    drawn = rng.integers(0, len(differences), size=(RESAMPLES, len(differences)), dtype=np.int32)
    means = differences[drawn].mean(axis=1)
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(means, [tail, 1 - tail])
    return Interval(float(differences.mean()), float(low), float(high))
