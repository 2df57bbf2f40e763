"""Writes without a model: selects the messages that answer, and lets them speak for themselves.

An answer is one to three statements, ``Ines (2026-08-14): … [id]``, each in the author's words:

- outdated messages give way to the latest one that corrects them;
- a reply that answers another message's question stands with that question;
- messages that give orders to an assistant are never used;
- when the evidence does not answer, the text says so (``answerability`` has the rule).
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from services.answer import extractive_windows, wording
from services.answer.answerability import (
    ABOUT_OVERLAP,
    covering,
    is_about,
    reason_to_abstain,
)
from services.answer.evidence import Evidence
from services.answer.excerpts import excerpt, statement
from services.answer.not_enough import SENTENCE
from services.answer.prompt import MAX_EVIDENCE, MAX_TEXT_CHARACTERS
from services.answer.question import Question, understand
from services.answer.selection import Scored, scored
from services.answer.supersession import successors
from services.answer.writer import DecisionsDraft, Draft
from services.corpus import Message

MAX_STATEMENTS = 3
# A further message is stated too when it is about the question and scores at most this much less
# than the best. Fitted on the development split of Beacon.
STATEMENT_MARGIN = 2.0


def write_answer(question_text: str, evidence: Sequence[Evidence]) -> Draft:
    """The answer to a question from evidence in its order, best first."""
    given = tuple(item.message for item in evidence)
    question = understand(question_text)
    candidates = current(question, scored(question, [_readable(item) for item in evidence]))
    reason = reason_to_abstain(question, candidates)
    if reason:
        return Draft(SENTENCE, given, reason)
    return Draft("\n".join(_statements(question, covering(question, candidates))), given)


def _readable(item: Evidence) -> Evidence:
    """A pasted log is read as far as a model would read it."""
    if len(item.message.text) <= MAX_TEXT_CHARACTERS:
        return item
    text = item.message.text[:MAX_TEXT_CHARACTERS]
    return replace(item, message=replace(item.message, text=text))


def current(question: Question, candidates: Sequence[Scored]) -> list[Scored]:
    """The candidates without outdated ones; what corrects one takes its place in the order."""
    by_id = {one.message_id: one for one in candidates}
    replaced = successors(question, [one.evidence.message for one in candidates])
    best: dict[str, float] = {}
    for one in candidates:
        holder = _latest(one.message_id, replaced)
        best[holder] = max(best.get(holder, one.score), one.score)
    kept = [replace(by_id[message_id], score=score) for message_id, score in best.items()]
    return sorted(kept, key=lambda one: -one.score)


def _latest(message_id: str, replaced: dict[str, str]) -> str:
    while message_id in replaced:
        message_id = replaced[message_id]
    return message_id


def _statements(question: Question, candidates: Sequence[Scored]) -> list[str]:
    chosen = _with_its_question(candidates[0], candidates)
    floor = candidates[0].score - STATEMENT_MARGIN
    further = [one for one in candidates if one.score >= floor and is_about(one)]
    chosen += [one for one in further if one not in chosen]
    chosen = chosen[:MAX_STATEMENTS]
    if all(_only_asks(one) for one in chosen):
        chosen += _reply_to(chosen[0], candidates)
    ordered = _questions_before_replies(chosen)
    return [
        statement(one.evidence.message, excerpt(one.evidence.message, question)) for one in ordered
    ]


def _reply_to(asking: Scored, candidates: Sequence[Scored]) -> list[Scored]:
    """The best statement of a question's own thread, else the best of all."""
    thread = asking.evidence.message.thread_root_id
    stating = [one for one in candidates if not _only_asks(one)]
    replies = [one for one in stating if one.evidence.message.thread_root_id == thread]
    return (replies or stating)[:1]


def _with_its_question(best: Scored, candidates: Sequence[Scored]) -> list[Scored]:
    """The best message, with the question that its thread begins with."""
    root_id = best.evidence.message.thread_root_id
    for one in candidates:
        asked_it = one.features["overlap"] >= ABOUT_OVERLAP
        if one.message_id == root_id and one is not best and asked_it and _only_asks(one):
            return [best, one]
    return [best]


def _only_asks(one: Scored) -> bool:
    return wording.is_question(one.evidence.message.text)


def _questions_before_replies(chosen: Sequence[Scored]) -> list[Scored]:
    """Best first, but a question right before the first reply of its own thread."""
    roots = {one.message_id: one for one in chosen if _only_asks(one)}
    ordered: list[Scored] = []
    for one in chosen:
        root = roots.get(one.evidence.message.thread_root_id)
        for next_one in (root, one):
            if next_one is not None and next_one not in ordered:
                ordered.append(next_one)
    return ordered


class ExtractiveWriter:
    """The writer that needs no key. Its work is done off the event loop."""

    name = "extractive"

    async def answer(
        self, question: str, evidence: Sequence[Evidence], safety_identifier: str
    ) -> Draft:
        """An answer from evidence, best first."""
        return await asyncio.to_thread(write_answer, question, evidence[:MAX_EVIDENCE])

    async def catch_up(self, scope: str, messages: Sequence[Message]) -> Draft:
        """The salient messages in time order."""
        text = await asyncio.to_thread(extractive_windows.catch_up, messages)
        return _window_draft(text, messages)

    async def summary(self, scope: str, messages: Sequence[Message]) -> Draft:
        """One salient message a thread, in time order."""
        text = await asyncio.to_thread(extractive_windows.summary, messages)
        return _window_draft(text, messages)

    async def rewrite(self, question: str, thread: Sequence[Message]) -> Draft:
        """No words but its own stand in a question that nobody understood."""
        return Draft("", tuple(thread))

    async def decisions(self, scope: str, messages: Sequence[Message]) -> DecisionsDraft:
        """The decisions that hold, oldest first."""
        found = await asyncio.to_thread(extractive_windows.decisions, messages)
        return DecisionsDraft(tuple(messages), found)


def _window_draft(text: str, messages: Sequence[Message]) -> Draft:
    if text:
        return Draft(text, tuple(messages))
    return Draft(SENTENCE, tuple(messages), "Nothing in these messages stands out.")
