"""WriteAnswer: evidence in, checked text out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from services.answer.answerability import NO_EVIDENCE
from services.answer.citations import Checked, Outcome, check
from services.answer.evidence import Evidence
from services.answer.not_enough import SENTENCE
from services.answer.writer import Draft, Writer


@dataclass(frozen=True)
class WrittenText:
    """Checked text, with who wrote it. ``model`` is empty for the extractive writer."""

    checked: Checked
    writer: str
    model: str = ""


async def write_answer(
    writer: Writer, question: str, evidence: Sequence[Evidence], safety_identifier: str = ""
) -> WrittenText:
    """The checked answer. Without evidence nothing is written and no model is called."""
    if not evidence:
        return WrittenText(Checked(Outcome.ABSTAINED, SENTENCE, (), NO_EVIDENCE), writer.name)
    draft = await writer.answer(question, evidence, safety_identifier)
    return checked_text(draft, writer.name, question)


def checked_text(draft: Draft, writer: str, question: str) -> WrittenText:
    """A draft after its check; the writer's own reason wins over the check's."""
    checked = check(draft.text, draft.given, question)
    if draft.reason and checked.outcome is not Outcome.ANSWERED:
        checked = replace(checked, reason=draft.reason)
    return WrittenText(checked, writer, draft.model)
