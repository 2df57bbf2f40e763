"""WriteAnswer: evidence in, checked text out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from services.answer.answerability import NO_EVIDENCE
from services.answer.citations import Checked, Outcome, check
from services.answer.evidence import Evidence
from services.answer.not_enough import SENTENCE
from services.answer.question import asks_nothing
from services.answer.writer import Draft, Writer

NOT_A_QUESTION = "That is too little to look for. Ask in a few words about something people said."


@dataclass(frozen=True)
class WrittenText:
    """Checked text, with who wrote it. ``model`` is empty for the extractive writer."""

    checked: Checked
    writer: str
    model: str = ""


async def write_answer(
    writer: Writer, question: str, evidence: Sequence[Evidence], safety_identifier: str = ""
) -> WrittenText:
    """The checked answer. Without a question or evidence nothing is written and no model called."""
    if asks_nothing(question):
        return _abstained(writer, NOT_A_QUESTION)
    if not evidence:
        return _abstained(writer, NO_EVIDENCE)
    draft = await writer.answer(question, evidence, safety_identifier)
    return checked_text(draft, writer.name, question)


def _abstained(writer: Writer, reason: str) -> WrittenText:
    return WrittenText(Checked(Outcome.ABSTAINED, SENTENCE, (), reason), writer.name)


def checked_text(draft: Draft, writer: str, question: str) -> WrittenText:
    """A draft after its check; the writer's own reason wins over the check's."""
    checked = check(draft.text, draft.given, question)
    if draft.reason and checked.outcome is not Outcome.ANSWERED:
        checked = replace(checked, reason=draft.reason)
    return WrittenText(checked, writer, draft.model)
