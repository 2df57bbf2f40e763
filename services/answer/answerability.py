"""Whether the evidence answers the question at all; the extractive writer's rule of abstention.

Two kinds of test, in order. *Certain* ones need no threshold: an identifier or a name of the
question that stands in no message, a topic whose latest word is that nothing was decided, a
wanted command or identifier that no candidate holds. *Levels* compare the best evidence with
thresholds:

- a reranking tier's score, 0 to 3 by its rubric (1 "background", 2 "states part of the answer");
- without one, the best cosine; a message that holds nearly all of the question's rare wording
  passes without it;
- without vectors, the share of the question's rare wording in the best message.

A question for one detail (who, when, how much, what is) is only answered by messages that are
about it: by its rare wording, their thread's root included, or by meaning.

The thresholds were fitted on the development split of Beacon with the local embedder and only
there; ``docs/answering.md`` gives the figures. A cosine of another embedder is on another scale.
"""

from __future__ import annotations

from collections.abc import Sequence

from services.answer import wording
from services.answer.question import Question, Wanted, names_identifier
from services.answer.selection import Scored, holds_wanted
from services.answer.sentences import stem, words

MIN_RERANK_SCORE = 1.5
MIN_COSINE = 0.41
MIN_COVERAGE_INSTEAD_OF_COSINE = 0.8
MIN_COVERAGE_WITHOUT_VECTORS = 0.5
# A message is about the question's matter when it has this share of its rarity-weighted stems.
ABOUT_OVERLAP = 0.3
# How many of the best candidates are looked at for the wanted detail and for open ends, and for
# closeness: as many as an answer states.
LOOKED_AT = 4
STATED = 3

NO_EVIDENCE = "No message was found for the question."
TOO_WEAK = "No message found is close enough to the question."
NOT_DECIDED = "The messages discuss this, but none states a decision."
NOT_COVERED = "No message found covers the words of the question."
NO_DETAIL = "The messages are about this, but none states the detail that was asked for."


def is_about(one: Scored) -> bool:
    """Whether a message is about the question: by its words, its thread's root included, or by its
    meaning. A third of what people ask shares no word with what answers it."""
    return one.features["told"] >= ABOUT_OVERLAP or one.features["cosine"] >= MIN_COSINE


def covering(question: Question, candidates: Sequence[Scored]) -> list[Scored]:
    """The candidates that may be stated: for a detail, those that cover the question's words."""
    return [one for one in candidates if not question.asks_for_detail or _covers(one)]


def _covers(one: Scored) -> bool:
    return _is_reranked(one) or is_about(one)


def reason_to_abstain(question: Question, candidates: Sequence[Scored]) -> str:
    """Why ``candidates`` (best first, outdated ones left out) do not answer; empty if they may."""
    if not candidates:
        return NO_EVIDENCE
    absent = _absent_names(question, candidates)
    if absent:
        return f"No message found mentions {absent}."
    if _is_undecided(question, candidates):
        return NOT_DECIDED
    exact = question.wanted in (Wanted.IDENTIFIER, Wanted.COMMAND)
    if exact and not any(_holds_wanted(question, one) for one in candidates[:LOOKED_AT]):
        return NO_DETAIL
    if not covering(question, candidates[:STATED]):
        return NOT_COVERED
    if any(_names_it_all(question, one) for one in candidates[:STATED]):
        return ""
    return "" if _is_close(candidates[:STATED]) else TOO_WEAK


def _names_it_all(question: Question, one: Scored) -> bool:
    """Whether a message holds the exact identifiers of the question and nearly all its words."""
    text = one.evidence.message.text
    named = all(names_identifier(text, name) for name in question.identifiers)
    is_whole = one.features["overlap"] >= MIN_COVERAGE_INSTEAD_OF_COSINE
    return bool(question.identifiers) and named and is_whole and not _is_reranked(one)


def _is_reranked(one: Scored) -> bool:
    return one.evidence.rerank_score is not None


def _absent_names(question: Question, candidates: Sequence[Scored]) -> str:
    """The question's identifiers and names that no message, author or channel has."""
    told = "\n".join(_told(one) for one in candidates)
    absent = [name for name in question.identifiers if not names_identifier(told, name)]
    if not absent:
        present = {stem(word) for word in words(told)}
        absent = [name for name in question.names if stem(name) not in present]
    return ", ".join(f"“{name}”" for name in sorted(absent))


def _told(one: Scored) -> str:
    message = one.evidence.message
    return f"{message.text} {message.author_name} {message.channel_name}"


def _is_undecided(question: Question, candidates: Sequence[Scored]) -> bool:
    """Whether the matter was only discussed: no decision about it, and it was asked for one, or
    somebody says that it is open, or the best message belongs to a call for opinions."""
    best = candidates[:LOOKED_AT]
    about = [one for one in best if one.features["overlap"] >= ABOUT_OVERLAP]
    if any(wording.is_decision(one.evidence.message.text) for one in about):
        return False
    texts = [one.evidence.message.text for one in best]
    return (
        question.asks_for_decision
        or any(wording.is_open(text) for text in texts)
        or _calls_for_opinions(candidates)
    )


def _calls_for_opinions(candidates: Sequence[Scored]) -> bool:
    thread = candidates[0].evidence.message.thread_root_id
    roots = [one.evidence.message for one in candidates if one.message_id == thread]
    return any(wording.calls_for_opinions(root.text) for root in roots)


def _holds_wanted(question: Question, one: Scored) -> bool:
    is_about = one.features["overlap"] >= ABOUT_OVERLAP or one.features["cosine"] >= MIN_COSINE
    return is_about and holds_wanted(question, one.evidence.message.text)


def _is_close(candidates: Sequence[Scored]) -> bool:
    reranked = [one.evidence.rerank_score for one in candidates]
    if any(score is not None for score in reranked):
        return max(score or 0.0 for score in reranked) >= MIN_RERANK_SCORE
    coverage = max(one.features["coverage"] for one in candidates)
    cosines = [one.evidence.cosine for one in candidates if one.evidence.cosine is not None]
    if not cosines:
        return coverage >= MIN_COVERAGE_WITHOUT_VECTORS
    return max(cosines) >= MIN_COSINE or coverage >= MIN_COVERAGE_INSTEAD_OF_COSINE
