"""One data set with everything that was measured on it, and one arm alone against both."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from evals import metrics
from evals.datasets import DEV, TEST, Dataset, Question
from evals.figures import (
    EVIDENCE_SIZE,
    Asked,
    AskFigures,
    Found,
    SearchFigures,
    ask_figures,
    search_figures,
)
from evals.ladder import Interval, message_order, paired_interval


@dataclass(frozen=True)
class Measured:
    """One data set with everything that was measured on it."""

    dataset: Dataset
    found: tuple[Found, ...]
    asked: tuple[Asked, ...] = ()
    reranked: tuple[Found, ...] = ()

    def of_split(self, split: str) -> Measured:
        """The same, of one split's questions."""
        return Measured(
            self.dataset,
            tuple(row for row in self.found if row.question.split == split),
            tuple(row for row in self.asked if row.question.split == split),
            tuple(row for row in self.reranked if row.question.split == split),
        )

    @property
    def replies(self) -> list[Found | Asked]:
        """Every reply of a search or an ask."""
        return [*self.found, *self.asked]

    @property
    def splits(self) -> list[str]:
        """The splits that were measured, the one that counts first."""
        present = {row.question.split for row in self.found}
        return [split for split in (TEST, DEV) if split in present]

    def search_figures(self) -> SearchFigures:
        """Search figures of all questions."""
        return search_figures(self.found)

    def ask_figures(self) -> AskFigures:
        """Ask figures of all questions."""
        return ask_figures(self.asked, self.dataset.messages)


Figure = Callable[[Question, Sequence[str]], float]


def arm_orders(measured: Measured) -> Mapping[str, list[Found]]:
    """Lexical alone, dense alone and both, each fused by the same rule from the arms' lists."""
    posted_at = {m.message_id: m.posted_at for m in measured.dataset.messages.values()}
    rows = [row for row in measured.found if row.question.grades]

    def ordered(*names: str) -> list[Found]:
        return [
            Found(
                row.question,
                tuple(message_order([getattr(row, name) for name in names], posted_at)),
                (),
                (),
            )
            for row in rows
        ]

    return {
        "lexical": ordered("lexical"),
        "dense": ordered("dense"),
        "fused": ordered("dense", "lexical"),
    }


def gain(orders: Mapping[str, Sequence[Found]], arm: str, figure: Figure) -> Interval:
    """fused - arm with its interval, for one figure over the same questions."""
    sides = ([figure(row.question, row.served) for row in orders[name]] for name in ("fused", arm))
    return paired_interval(*sides)


def mrr(question: Question, ranking: Sequence[str]) -> float:
    """Reciprocal rank of the first message that states the answer."""
    return metrics.reciprocal_rank(ranking, question.stating)


def hit_5(question: Question, ranking: Sequence[str]) -> float:
    """Whether the first five hold a message that states the answer."""
    return metrics.hit_at(ranking, question.stating, 5)


def hit_12(question: Question, ranking: Sequence[str]) -> float:
    """Whether the evidence holds a message that states the answer."""
    return metrics.hit_at(ranking, question.stating, EVIDENCE_SIZE)
