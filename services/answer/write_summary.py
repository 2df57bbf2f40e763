"""WriteSummary: messages in time order in, checked summary out."""

from __future__ import annotations

from collections.abc import Sequence

from services.answer.write_answer import WrittenText, checked_text
from services.answer.write_catch_up import empty_window
from services.answer.writer import Writer
from services.corpus import Message


async def write_summary(writer: Writer, scope: str, messages: Sequence[Message]) -> WrittenText:
    """The checked summary. Without messages nothing is written and no model is called."""
    if not messages:
        return empty_window(writer)
    return checked_text(await writer.summary(scope, messages), writer.name, scope)
