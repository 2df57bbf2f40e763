"""RewriteQuestion: a question and its thread in, a question that stands by itself out."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from services.answer.writer import Writer
from services.corpus import Message

MAX_CHARACTERS = 1_000
# The root and what was said last: what a question inside a thread points at.
MOST_RECENT = 11

_CITATION = re.compile(r"\[(?:slack|synthetic|document):[^\]]*\]")


@dataclass(frozen=True)
class Rewritten:
    """``question`` is as it was when nothing rewrote it; then ``is_rewritten`` is false."""

    question: str
    is_rewritten: bool = False
    model: str = ""


async def rewrite_question(writer: Writer, question: str, thread: Sequence[Message]) -> Rewritten:
    """The question in words that need no thread, by a model; unchanged without one.

    A rewriting that is empty, or longer than a question, is none. Raises CallError of the model.
    """
    if not thread:
        return Rewritten(question)
    given = [thread[0], *thread[1:][-MOST_RECENT:]]
    draft = await writer.rewrite(question, given)
    rewritten = " ".join(_CITATION.sub(" ", draft.text).split())
    if not rewritten or len(rewritten) > max(MAX_CHARACTERS, 2 * len(question)):
        return Rewritten(question)
    return Rewritten(rewritten, True, draft.model)
