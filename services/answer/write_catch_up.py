"""WriteCatchUp: messages in time order in, checked catch-up out."""

from __future__ import annotations

from collections.abc import Sequence

from services.answer.citations import Checked, Outcome
from services.answer.write_answer import WrittenText, checked_text
from services.answer.writer import Writer
from services.corpus import Message

NOTHING_HAPPENED = "There are no messages in this window."


async def write_catch_up(writer: Writer, scope: str, messages: Sequence[Message]) -> WrittenText:
    """The checked catch-up. Without messages nothing is written and no model is called."""
    if not messages:
        return empty_window(writer)
    return checked_text(await writer.catch_up(scope, messages), writer.name, scope)


def empty_window(writer: Writer) -> WrittenText:
    """What is said about a window without messages."""
    empty = Checked(Outcome.ABSTAINED, NOTHING_HAPPENED, (), NOTHING_HAPPENED)
    return WrittenText(empty, writer.name)
