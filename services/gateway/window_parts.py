"""A window that is too long for one request, in parts: read, written and put together.

Each part is written and checked by itself. What the parts cite is then written once more, as one
window, so that the whole text rests on messages of the whole window and passes the same check.
Decisions are kept as each part found them; writing them once more only tells which of them
replaced one of another part.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace

from recall.answer.v1 import answer_pb2
from recall.corpus.v1 import corpus_pb2
from services.gateway.checking import UNUSABLE_REPLY, check, is_usable
from services.gateway.deadline import Deadline
from services.runtime.errors import CallError

WRITE_SECONDS = 120.0

Messages = tuple[corpus_pb2.Message, ...]


@dataclass(frozen=True)
class Written:
    """What the writer made of a window."""

    text: answer_pb2.WrittenText
    decisions: tuple[answer_pb2.Decision, ...] = ()


Write = Callable[[list[corpus_pb2.Message], str, float], Awaitable[Written]]


@dataclass(frozen=True)
class Part:
    """Consecutive messages of a window, oldest first; ``reason`` says why there are none."""

    messages: Messages
    reason: str = ""


@dataclass
class Whole:
    """A window as it was read and written.

    ``newest`` are the messages of its newest part, ``cited`` those that any part cites, both
    oldest first. ``written`` is the text, or why there is none; None: there was nothing to write.
    """

    written: Written | str | None = None
    newest: Messages = ()
    cited: Messages = ()
    messages_read: int = 0
    reason: str = ""
    parts: list[Written] = field(default_factory=list)


async def write_parts(
    parts: AsyncIterator[Part], write: Write, scope: str, deadline: Deadline
) -> Whole:
    """Write each part, the newest first, and then the whole. Raises CallError of the reading.

    A part that can not be written, or does not hold, leaves no text: without it a stretch of the
    window would be missing unseen.
    """
    whole = Whole()
    async for part in parts:
        whole.reason = part.reason
        if not part.messages:
            break
        whole.newest = whole.newest or part.messages
        whole.messages_read += len(part.messages)
        written = await _write(write, part.messages, scope, deadline)
        if isinstance(written, str) or not _holds(written, part.messages):
            whole.written, whole.cited = written, part.messages
            return whole
        cited = set(written.text.cited_message_ids)
        whole.cited = (*(m for m in part.messages if m.message_id in cited), *whole.cited)
        whole.parts.insert(0, written)
    await _put_together(whole, write, scope, deadline)
    return whole


async def _put_together(whole: Whole, write: Write, scope: str, deadline: Deadline) -> None:
    if len(whole.parts) < 2 or not whole.cited:
        whole.written = whole.parts[-1] if whole.parts else None
        return
    again = await _write(write, whole.cited, scope, deadline)
    told = [part for part in whole.parts if part.text.outcome == corpus_pb2.OUTCOME_ANSWERED]
    if any(part.decisions for part in told):
        whole.written = together(told, again if isinstance(again, Written) else None)
    else:
        whole.written = again


async def _write(write: Write, messages: Messages, scope: str, deadline: Deadline) -> Written | str:
    try:
        written = await write(list(messages), scope, deadline.share(WRITE_SECONDS))
    except CallError as error:
        return error.message
    return written if is_usable(written.text) else UNUSABLE_REPLY


def _holds(written: Written, messages: Messages) -> bool:
    return check(written.text, messages).outcome != corpus_pb2.OUTCOME_UNVERIFIED


def together(parts: Sequence[Written], again: Written | None) -> Written:
    """The decisions of all parts, oldest first, with what ``again`` says they replaced."""
    known = _replacing(again) if again else {}
    lines: list[str] = []
    decisions: list[answer_pb2.Decision] = []
    cited: dict[str, None] = {}
    for part in parts:
        for decision, line in zip(part.decisions, part.text.text.splitlines(), strict=False):
            found = None if decision.replaces_message_id else known.get(decision.message_id)
            decision, line = found or (decision, line)
            decisions.append(decision)
            lines.append(line)
            cited |= dict.fromkeys(
                filter(None, (decision.message_id, decision.replaces_message_id))
            )
    text = answer_pb2.WrittenText()
    text.CopyFrom(parts[0].text)
    text.text = "\n".join(lines)
    text.cited_message_ids[:] = list(cited)
    return replace(parts[0], text=text, decisions=tuple(decisions))


def _replacing(again: Written) -> dict[str, tuple[answer_pb2.Decision, str]]:
    """Decisions that replaced one, with their lines, by the message that states them."""
    pairs = zip(again.decisions, again.text.text.splitlines(), strict=False)
    return {
        decision.message_id: (decision, line)
        for decision, line in pairs
        if decision.replaces_message_id
    }
