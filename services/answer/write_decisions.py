"""WriteDecisions: messages in time order in, checked decisions out."""

from __future__ import annotations

from collections.abc import Sequence

from services.answer.citations import unverified
from services.answer.decisions import Decision, check_decisions
from services.answer.write_answer import WrittenText
from services.answer.write_catch_up import empty_window
from services.answer.writer import Writer
from services.corpus import Message


async def write_decisions(
    writer: Writer, scope: str, messages: Sequence[Message]
) -> tuple[WrittenText, list[Decision]]:
    """The checked decisions as text and as data. That there are none is a result (ABSTAINED)."""
    if not messages:
        return empty_window(writer), []
    draft = await writer.decisions(scope, messages)
    if draft.refusal:
        return WrittenText(unverified(draft.refusal), writer.name, draft.model), []
    checked, decisions = check_decisions(draft.decisions, draft.given)
    return WrittenText(checked, writer.name, draft.model), decisions
