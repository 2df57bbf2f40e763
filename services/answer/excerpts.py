"""Statements built from messages: who said what when, in their own words, with the citation."""

from __future__ import annotations

import re
from datetime import UTC

from services.answer import wording
from services.answer.code_blocks import CUT_NOTE, on_one_line
from services.answer.linked import split_linked, without_addresses
from services.answer.mentions import without_ids
from services.answer.question import Question
from services.answer.quotations import plain
from services.answer.selection import holds_wanted
from services.answer.sentences import sentences, stems, words
from services.corpus import Message

# A message up to this length is shown whole; of a longer one the best sentence and its neighbours.
WHOLE_MESSAGE_CHARACTERS = 240

_QUOTATION_MARKS = re.compile('["“”„«»]')
_NOT_IN_NAMES = re.compile('[\\[\\](){}<>"“”„«»`]')


def statement(message: Message, told: str) -> str:
    """``Ines (2026-08-14): told [id]``, on one line."""
    day = message.posted_at.astimezone(UTC).strftime("%Y-%m-%d")
    return f"{display_name(message)} ({day}): {told} [{message.message_id}]"


def display_name(message: Message) -> str:
    """The author's name without anything that could read as a citation, link or quotation."""
    name = _NOT_IN_NAMES.sub(" ", without_ids(message.author_name))
    return " ".join(name.split()) or "Somebody"


def faithful_words(taken: str, message: Message) -> str:
    """Words taken from a message. Put together from several places, their quotation marks could
    span what was left out; then they become single ones."""
    told = plain(message.text)
    if plain(taken) in told or plain(taken.replace(f" {CUT_NOTE}`", "`")) in told:
        return taken
    return _QUOTATION_MARKS.sub("'", taken)


def excerpt(message: Message, question: Question | None = None) -> str:
    """The words of a message that matter for ``question``, or its beginning, on one line.

    The author's words, unless they are none or only what their link shows is about the question:
    that is given as ``linked page: …``.
    """
    own = wording.own_words(message.text)
    _, shown, label = split_linked(message.text)
    if shown and _is_linked_better(own, shown, question):
        return f"{label}: {_excerpt(without_ids(shown), message, question)}"
    return _excerpt(own, message, question)


def _is_linked_better(own: str, shown: str, question: Question | None) -> bool:
    said = without_addresses(own)
    if not words(said):
        return True
    asked = question.stems if question else frozenset()
    return not stems(said) & asked and bool(stems(shown) & asked)


def _excerpt(text: str, message: Message, question: Question | None) -> str:
    parts = sentences(on_one_line(text))
    if not parts:
        return ""
    best = _best(parts, question) if question else 0
    return _shortened(faithful_words(_around(parts, best), message))


def _best(parts: list[str], question: Question) -> int:
    def value(at: int) -> tuple[float, int]:
        shared = len(stems(parts[at]) & question.stems)
        # "New launch: the 22nd, no longer the 15th" says more than "launching then is risky".
        changes = 0.5 * min(2, wording.corrections(parts[at]))
        return shared + 1.5 * holds_wanted(question, parts[at]) + changes, -at

    return max(range(len(parts)), key=value)


def _around(parts: list[str], best: int) -> str:
    """Sentence ``best`` with as many whole neighbours as fit, the following ones first."""
    first, last = best, best
    while True:
        if last + 1 < len(parts) and _length(parts, first, last + 1) <= WHOLE_MESSAGE_CHARACTERS:
            last += 1
        elif first > 0 and _length(parts, first - 1, last) <= WHOLE_MESSAGE_CHARACTERS:
            first -= 1
        else:
            return " ".join(parts[first : last + 1])


def _length(parts: list[str], first: int, last: int) -> int:
    return sum(len(part) + 1 for part in parts[first : last + 1])


def _shortened(told: str) -> str:
    """At most twice the usual length, cut between words and outside of code."""
    limit = 2 * WHOLE_MESSAGE_CHARACTERS
    if len(told) <= limit:
        return told
    cut = told[:limit].rsplit(" ", 1)[0]
    if cut.count("`") % 2:
        before = cut[: cut.rindex("`")].rstrip()
        if not before:
            return f"{cut} {CUT_NOTE}`"
        cut = before
    return f"{cut} {CUT_NOTE}"
