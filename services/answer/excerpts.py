"""Statements built from messages: who said what when, in their own words, with the citation."""

from __future__ import annotations

from datetime import UTC

from services.answer import wording
from services.answer.question import Question
from services.answer.selection import holds_wanted
from services.answer.sentences import sentences, stems
from services.corpus import Message

# A message up to this length is shown whole; of a longer one the best sentence and its neighbours.
WHOLE_MESSAGE_CHARACTERS = 240
CUT_NOTE = "…"


def statement(message: Message, words: str) -> str:
    """``Ines (2026-08-14): words [id]``, on one line."""
    day = message.posted_at.astimezone(UTC).strftime("%Y-%m-%d")
    author = " ".join(message.author_name.split()) or "Somebody"
    return f"{author} ({day}): {words} [{message.message_id}]"


def excerpt(message: Message, question: Question | None = None) -> str:
    """The words of a message that matter for ``question``, or its beginning, on one line."""
    parts = sentences(wording.own_words(message.text)) or sentences(message.text)
    if not parts:
        return ""
    best = _best(parts, question) if question else 0
    return _shortened(_around(parts, best))


def _best(parts: list[str], question: Question) -> int:
    def value(at: int) -> tuple[float, int]:
        shared = len(stems(parts[at]) & question.stems)
        return shared + 1.5 * holds_wanted(question, parts[at]), -at

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
