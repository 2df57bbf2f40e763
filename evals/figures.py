"""Averages over questions: what the tables show and the targets judge."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from evals import judgements, metrics
from evals.datasets import LabelledMessage, Question
from evals.judgements import GivenAnswer
from evals.ladder import ArmList

EVIDENCE_SIZE = 12
ALL = "all"


@dataclass(frozen=True)
class Found:
    """A question with the served ranking, both arms' lists and what leaked."""

    question: Question
    served: tuple[str, ...]
    dense: ArmList
    lexical: ArmList
    leaks: tuple[str, ...] = ()

    @property
    def evidence(self) -> tuple[str, ...]:
        """The messages that an answer would be written from."""
        return self.served[:EVIDENCE_SIZE]


@dataclass(frozen=True)
class Asked:
    """A question with its answer, what leaked, and what the stack said was missing."""

    question: Question
    given: GivenAnswer
    leaks: tuple[str, ...] = ()
    degraded: tuple[str, ...] = ()
    tier: str = ""
    writer: str = ""


@dataclass(frozen=True)
class SearchFigures:
    """Means over questions with evidence; hits and MRR count messages that state the answer."""

    questions: int
    recall_12: float
    recall_12_stating: float
    hit_1: float
    hit_5: float
    hit_12: float
    mrr: float
    ndcg_10: float
    stale_first: int
    with_stale: int


@dataclass(frozen=True)
class AskFigures:
    """Counts over questions."""

    answerable: int
    answered: int
    cited_evidence: int
    cited_answer: int
    falsely_abstained: int
    unanswerable: int
    rightly_abstained: int
    stale_as_current: int
    leaks: int

    @property
    def cited_share(self) -> float:
        """Share of the answerable questions that were answered citing a graded message."""
        return _share(self.cited_evidence, self.answerable)

    @property
    def false_abstention(self) -> float:
        """Share of the answerable questions on which the product abstained."""
        return _share(self.falsely_abstained, self.answerable)

    @property
    def abstention(self) -> float:
        """Share of the unanswerable questions on which the product abstained."""
        return _share(self.rightly_abstained, self.unanswerable)


def search_figures(found: Sequence[Found]) -> SearchFigures:
    """Averages over the questions that have evidence."""
    rows = [(f.question, f.served) for f in found if f.question.grades]

    def average(figure: Callable[[Question, Sequence[str]], float]) -> float:
        return metrics.mean(figure(question, ranking) for question, ranking in rows)

    return SearchFigures(
        questions=len(rows),
        recall_12=average(lambda q, r: metrics.recall_at(r, q.grades, EVIDENCE_SIZE)),
        recall_12_stating=average(lambda q, r: metrics.recall_at(r, q.stating, EVIDENCE_SIZE)),
        hit_1=average(lambda q, r: metrics.hit_at(r, q.stating, 1)),
        hit_5=average(lambda q, r: metrics.hit_at(r, q.stating, 5)),
        hit_12=average(lambda q, r: metrics.hit_at(r, q.stating, EVIDENCE_SIZE)),
        mrr=average(lambda q, r: metrics.reciprocal_rank(r, q.stating)),
        ndcg_10=average(lambda q, r: metrics.ndcg_at(r, q.grades, 10)),
        stale_first=sum(judgements.ranks_stale_first(q, r[:EVIDENCE_SIZE]) for q, r in rows),
        with_stale=sum(bool(q.stale) for q, _ in rows),
    )


def ask_figures(asked: Sequence[Asked], messages: Mapping[str, LabelledMessage]) -> AskFigures:
    """Counts over all questions asked."""
    answerable = [(a.question, a.given) for a in asked if a.question.answerable]
    unanswerable = [a.given for a in asked if not a.question.answerable]
    stale = judgements.presents_stale_as_current
    return AskFigures(
        answerable=len(answerable),
        answered=sum(judgements.is_answered(given) for _, given in answerable),
        cited_evidence=sum(judgements.cites_evidence(*pair) for pair in answerable),
        cited_answer=sum(judgements.cites_the_answer(*pair) for pair in answerable),
        falsely_abstained=sum(judgements.is_abstained(given) for _, given in answerable),
        unanswerable=len(unanswerable),
        rightly_abstained=sum(map(judgements.is_abstained, unanswerable)),
        stale_as_current=sum(stale(a.question, a.given, messages) for a in asked),
        leaks=sum(bool(a.leaks) for a in asked),
    )


def by_kind(rows: Sequence[Found]) -> list[tuple[str, SearchFigures]]:
    """Search figures of each question type, then of all."""
    kinds = _kinds(row.question for row in rows if row.question.grades)
    parts = [
        (kind, search_figures([row for row in rows if row.question.kind == kind])) for kind in kinds
    ]
    return [*parts, (ALL, search_figures(rows))]


def asked_by_kind(
    rows: Sequence[Asked], messages: Mapping[str, LabelledMessage]
) -> list[tuple[str, AskFigures]]:
    """Ask figures of each question type, then of all."""
    kinds = _kinds(row.question for row in rows)
    parts = [
        (kind, ask_figures([row for row in rows if row.question.kind == kind], messages))
        for kind in kinds
    ]
    return [*parts, (ALL, ask_figures(rows, messages))]


def outcomes(rows: Iterable[Asked]) -> Counter[str]:
    """How many asks ended in each way."""
    return Counter(row.given.outcome for row in rows)


@dataclass(frozen=True)
class Miss:
    """A question whose evidence is not all among the first twelve messages."""

    question_id: str
    kind: str
    stating_found: int
    stating: int
    supporting_found: int


def misses(rows: Iterable[Found]) -> list[Miss]:
    """Questions of which a message that states the answer is missing from the evidence."""
    listed = []
    for row in rows:
        evidence = set(row.evidence)
        stating = row.question.stating
        supporting = set(row.question.grades) - stating
        if stating - evidence:
            listed.append(
                Miss(
                    row.question.question_id,
                    row.question.kind,
                    len(stating & evidence),
                    len(stating),
                    len(supporting & evidence),
                )
            )
    return listed


def _kinds(questions: Iterable[Question]) -> list[str]:
    """Question types in the order of their first question."""
    return list(dict.fromkeys(question.kind for question in questions))


def _share(part: int, whole: int) -> float:
    return part / whole if whole else float("nan")
