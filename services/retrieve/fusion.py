"""Reciprocal rank fusion of the two arms at message level.

The chunk at position ``rank`` (from 0) of a list adds 1 / (rank + 10) to every message it
contains. Both arms have equal weight. (G. V. Cormack, C. L. A. Clarke, S. Büttcher: Reciprocal
Rank Fusion outperforms Condorcet, SIGIR 2009, with 10 in place of 60: the first few positions
weigh more.)
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import IntEnum

RANK_CONSTANT = 10


class Arm(IntEnum):
    """One of the two searches, in the order in which contributions are listed."""

    DENSE = 1
    LEXICAL = 2


@dataclass(frozen=True)
class Candidate:
    """A chunk of one arm's list.

    ``score`` is the arm's own: cosine distance (lower is nearer) or ts_rank (higher is better).
    ``message_ids`` are the chunk's messages that pass the filters, in thread order.
    """

    chunk_id: str
    chunk_kind: str
    score: float
    message_ids: tuple[str, ...]


@dataclass(frozen=True)
class Contribution:
    """What one chunk of one arm adds to a message: 1 / (rank + 10)."""

    arm: Arm
    chunk_id: str
    chunk_kind: str
    rank: int

    @property
    def score(self) -> float:
        """The share of the fused score."""
        return 1 / (self.rank + RANK_CONSTANT)


@dataclass(frozen=True)
class FusedMessage:
    """A message with what raised it: dense contributions first, each arm's by rank."""

    message_id: str
    contributions: tuple[Contribution, ...]

    @property
    def score(self) -> float:
        """Sum of the contributions, rounded once: equal contributions give equal scores."""
        return math.fsum(contribution.score for contribution in self.contributions)

    def rank_in(self, arm: Arm) -> int | None:
        """Best position in one arm's list; None when no chunk of it holds the message."""
        ranks = (c.rank for c in self.contributions if c.arm is arm)
        return min(ranks, default=None)

    @property
    def best_rank(self) -> int:
        """Best position in either list."""
        return min(contribution.rank for contribution in self.contributions)


def reciprocal_rank_fusion(
    rankings: Mapping[Arm, Sequence[Candidate]], posted_at: Mapping[str, datetime]
) -> list[FusedMessage]:
    """All messages of the rankings, best first.

    Equal scores: the better best rank first, then the newer message, then the smaller id.
    ``posted_at`` holds every message of the rankings.
    """
    found: dict[str, list[Contribution]] = {}
    for arm in sorted(rankings):
        for rank, chunk in enumerate(rankings[arm]):
            contribution = Contribution(arm, chunk.chunk_id, chunk.chunk_kind, rank)
            for message_id in dict.fromkeys(chunk.message_ids):
                found.setdefault(message_id, []).append(contribution)
    fused = [FusedMessage(message_id, tuple(parts)) for message_id, parts in found.items()]
    return sorted(
        fused,
        key=lambda message: (
            -message.score,
            message.best_rank,
            -posted_at[message.message_id].timestamp(),
            message.message_id,
        ),
    )
