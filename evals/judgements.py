"""What one answer is worth against its question's labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from evals.datasets import LabelledMessage, Question
from evals.word_runs import runs_of

ANSWERED, ABSTAINED = "answered", "abstained"


@dataclass(frozen=True)
class GivenAnswer:
    """How an ask ended. ``evidence`` are the ids that the writer was given, in order."""

    outcome: str
    text: str = ""
    cited: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()


def is_answered(given: GivenAnswer) -> bool:
    """Whether a checked answer was shown."""
    return given.outcome == ANSWERED


def is_abstained(given: GivenAnswer) -> bool:
    """Whether the product said that the evidence does not answer."""
    return given.outcome == ABSTAINED


def cites_evidence(question: Question, given: GivenAnswer) -> bool:
    """Answered, citing at least one graded message."""
    return is_answered(given) and any(message_id in question.grades for message_id in given.cited)


def cites_the_answer(question: Question, given: GivenAnswer) -> bool:
    """Answered, citing at least one message that states the answer."""
    return is_answered(given) and not question.stating.isdisjoint(given.cited)


def presents_stale_as_current(
    question: Question, given: GivenAnswer, messages: Mapping[str, LabelledMessage]
) -> bool:
    """A stale message is cited or quoted, no correction is cited, and one was in the evidence.

    A correction is a message that states the answer. A quotation is a run of eight words.
    """
    if not is_answered(given) or question.stating.isdisjoint(given.evidence):
        return False
    if not question.stating.isdisjoint(given.cited):
        return False
    return any(m in given.cited or _quoted(messages[m].text, given.text) for m in question.stale)


def cites_stale_uncorrected(question: Question, given: GivenAnswer) -> bool:
    """A stale message is cited and the evidence held no correction: a miss of search, which
    the writer could not see."""
    missing = question.stating.isdisjoint(given.evidence)
    return is_answered(given) and missing and not question.stale.isdisjoint(given.cited)


def ranks_stale_first(question: Question, ranking: Sequence[str]) -> bool:
    """Both a stale message and a correction are in the ranking, and a stale one stands first."""
    marked = [m for m in ranking if m in question.stale or m in question.stating]
    return not question.stating.isdisjoint(marked) and marked[0] in question.stale


def _quoted(source: str, text: str) -> bool:
    return not runs_of(source).isdisjoint(runs_of(text))
