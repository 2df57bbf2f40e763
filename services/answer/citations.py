"""The citation check that every text passes before it leaves this service.

Given a text and the messages its writer was given, ``check`` decides (in this order):

1. an id that is none of the messages' ids replaces the whole text by ``UNVERIFIED_TEXT``;
2. no citation does the same, unless the whole text only says that it could not find enough
   evidence: then the outcome is ABSTAINED and the text stays;
3. links survive only if they stand verbatim in a cited message, their labels stay;
4. a quotation of four words or more that is not verbatim in the message cited for it replaces
   the whole text; a shorter one loses its quotation marks.

Citations are printed as ``[id]``. Checking a checked text changes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from services.answer.links import without_foreign_links
from services.answer.mentions import MARK, Marked, mark
from services.answer.not_enough import says_not_enough
from services.answer.quotations import faithful
from services.corpus import Message

UNVERIFIED_TEXT = "I couldn’t verify an answer from the available messages."
NO_TEXT = "Nothing was written."
UNKNOWN_CITATION = "The written text cited a message that was not among the evidence."
NO_CITATION = "The written text cited no message."
FALSE_QUOTATION = "The written text quoted words that are not in the message it cited for them."
NOT_ENOUGH = "The messages found do not answer the question."


class Outcome(StrEnum):
    """How a writing ended; the names are those of ``recall.corpus.v1.Outcome``."""

    ANSWERED = "answered"
    ABSTAINED = "abstained"
    UNVERIFIED = "unverified"


@dataclass(frozen=True)
class Checked:
    """Text that may be shown. ``cited_ids`` are in order of first citation."""

    outcome: Outcome
    text: str
    cited_ids: tuple[str, ...] = ()
    reason: str = ""


def unverified(reason: str) -> Checked:
    """The fixed sentence, with the reason why nothing else is shown."""
    return Checked(Outcome.UNVERIFIED, UNVERIFIED_TEXT, (), reason)


def check(text: str, messages: Sequence[Message], question: str = "") -> Checked:
    """The text as it may be shown. ``messages`` are those the writer was really given."""
    by_id = {message.message_id: message.text for message in messages}
    marked = mark(text, by_id)
    if marked.unknown:
        return unverified(UNKNOWN_CITATION)
    if not re.search(r"\w", MARK.sub("", marked.text)):
        return unverified(NO_TEXT)
    if not marked.cited_ids():
        return _without_citation(marked, question)
    return _with_citations(marked, by_id, question)


def _without_citation(marked: Marked, question: str) -> Checked:
    if MARK.search(marked.text) or not says_not_enough(marked.text, question):
        return unverified(NO_CITATION)
    return Checked(Outcome.ABSTAINED, _tidy(marked.text), (), NOT_ENOUGH)


def _with_citations(marked: Marked, by_id: dict[str, str], question: str) -> Checked:
    cited = marked.cited_ids()
    linkless = without_foreign_links(marked.text, [by_id[message_id] for message_id in cited])
    text = faithful(linkless, {n: by_id[id_] for n, id_ in enumerate(marked.ids)})
    if text is None:
        return unverified(FALSE_QUOTATION)
    printed = _tidy(marked.printed(text))
    if says_not_enough(MARK.sub("", text), question):
        return Checked(Outcome.ABSTAINED, printed, cited, NOT_ENOUGH)
    return Checked(Outcome.ANSWERED, printed, cited)


def _tidy(text: str) -> str:
    """Without the gaps that removed words leave; line breaks and indentation stay."""
    text = re.sub(r"(?<=\S)[ \t]{2,}", " ", text)
    text = re.sub(r"(?<=[^\s|])[ \t]+([.,;!?])(?=\s|$)", r"\1", text)
    return re.sub(r"[ \t]+$", "", text, flags=re.MULTILINE).strip()
