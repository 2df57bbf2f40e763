"""Statements built from messages: who said what when, in their own words, with the citation."""

from __future__ import annotations

import re
from datetime import UTC

from services.answer import wording
from services.answer.mentions import without_ids
from services.answer.question import Question
from services.answer.quotations import plain
from services.answer.selection import holds_wanted
from services.answer.sentences import sentences, stems
from services.corpus import Message

# A message up to this length is shown whole; of a longer one the best sentence and its neighbours.
WHOLE_MESSAGE_CHARACTERS = 240
CUT_NOTE = "…"

_QUOTATION_MARKS = re.compile('["“”„«»]')
_NOT_IN_NAMES = re.compile('[\\[\\](){}<>"“”„«»`]')


def statement(message: Message, words: str) -> str:
    """``Ines (2026-08-14): words [id]``, on one line."""
    day = message.posted_at.astimezone(UTC).strftime("%Y-%m-%d")
    return f"{display_name(message)} ({day}): {words} [{message.message_id}]"


def display_name(message: Message) -> str:
    """The author's name without anything that could read as a citation, link or quotation."""
    name = _NOT_IN_NAMES.sub(" ", without_ids(message.author_name))
    return " ".join(name.split()) or "Somebody"


def faithful_words(words: str, message: Message) -> str:
    """Words taken from a message. Put together from several places, their quotation marks could
    span what was left out; then they become single ones."""
    if plain(words) in plain(message.text):
        return words
    return _QUOTATION_MARKS.sub("'", words)


def excerpt(message: Message, question: Question | None = None) -> str:
    """The words of a message that matter for ``question``, or its beginning, on one line."""
    parts = sentences(wording.own_words(message.text))
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


def _shortened(words: str) -> str:
    """At most twice the usual length, cut between words and outside of code."""
    limit = 2 * WHOLE_MESSAGE_CHARACTERS
    if len(words) <= limit:
        return words
    cut = words[:limit].rsplit(" ", 1)[0]
    if cut.count("`") % 2:
        cut = cut[: cut.rindex("`")].rstrip()
    return f"{cut} {CUT_NOTE}"
