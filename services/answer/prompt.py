"""What a language model is given: instructions, the question, and the evidence as data.

Every message becomes exactly one line,

    [id · #channel · 2026-08-14T09:12:00Z · author] "text as a JSON string"

so every line is attributable, and no text can begin a line of its own or end its string: line
breaks, quotes and control characters are escaped. Inside the string the bracket of anything that
looks like a source id and the ``<|`` of anything that looks like a control token are escaped too,
so that neither a forged citation nor a token is ever read as one. Names, which people choose
themselves, lose brackets, line breaks and the separator.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC
from functools import cache
from importlib import resources

from services.corpus import Message

MAX_EVIDENCE = 12
# A pasted log must not push the other messages out; quotations are still checked on the whole text.
MAX_TEXT_CHARACTERS = 20_000
CUT_NOTE = " …(cut)"
MAX_NAME_CHARACTERS = 80

_FORGED_ID = re.compile(r"\[(?=\s*(?:slack|synthetic|document)\s*:)", re.IGNORECASE)
_LINE_BREAKS = re.compile("[\x7f-\x9f\u2028\u2029\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]")
_NOT_IN_NAMES = re.compile(r'[\[\]"·\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]+')


@dataclass(frozen=True)
class Prompt:
    """One request to a model. ``given`` are the messages in it: the only ones it may cite."""

    instructions: str
    input: str
    given: tuple[Message, ...]


@cache
def instructions(name: str) -> str:
    """The instructions in ``prompts/<name>.md``."""
    file = resources.files("services.answer") / "prompts" / f"{name}.md"
    return file.read_text(encoding="utf-8")


def answer_prompt(question: str, evidence: Sequence[Message]) -> Prompt:
    """The prompt for one question. Messages beyond the twelfth are never sent."""
    given = tuple(evidence[:MAX_EVIDENCE])
    lines = [f"Question: {_as_data(question)}", "", "Messages, best first:", *_lines(given)]
    return Prompt(instructions("answer"), "\n".join(lines), given)


def window_prompt(name: str, scope: str, messages: Sequence[Message]) -> Prompt:
    """The prompt for a window in time order; ``name`` is catch_up, summary or decisions."""
    given = tuple(messages)
    lines = [f"Window: {_as_data(scope)}", "", "Messages, oldest first:", *_lines(given)]
    return Prompt(instructions(name), "\n".join(lines), given)


def rewrite_prompt(question: str, thread: Sequence[Message]) -> Prompt:
    """The prompt that makes a question inside a thread self-contained."""
    given = tuple(thread)
    lines = [f"Question: {_as_data(question)}", "", "Thread, oldest first:", *_lines(given)]
    return Prompt(instructions("rewrite_question"), "\n".join(lines), given)


def merge_prompt(name: str, scope: str, parts: Sequence[str], given: Sequence[Message]) -> Prompt:
    """The prompt that makes one text of the checked texts of consecutive parts of a window."""
    head = (
        "The window was too long for one reading. Below are the texts of its parts, oldest first, "
        "each a JSON string that already cites its sources. Write the text for the whole window "
        "from them, keeping their ids exactly."
    )
    lines = [f"Window: {_as_data(scope)}", "", head, *(_as_json(part) for part in parts)]
    return Prompt(instructions(name), "\n".join(lines), tuple(given))


def message_line(message: Message) -> str:
    """One message as one line."""
    posted_at = message.posted_at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    channel, author = _name(message.channel_name), _name(message.author_name)
    header = f"[{message.message_id} · #{channel} · {posted_at} · {author}]"
    return f"{header} {_as_data(message.text)}"


def batches(messages: Sequence[Message], max_characters: int) -> list[list[Message]]:
    """Consecutive messages in as few batches as fit ``max_characters`` of prompt lines each."""
    grouped: list[list[Message]] = []
    used = 0
    for message in messages:
        size = len(message_line(message)) + 1
        if not grouped or used + size > max_characters:
            grouped.append([])
            used = 0
        grouped[-1].append(message)
        used += size
    return grouped


def _lines(messages: Sequence[Message]) -> list[str]:
    return [message_line(message) for message in messages]


def _as_data(text: str) -> str:
    if len(text) > MAX_TEXT_CHARACTERS:
        text = text[:MAX_TEXT_CHARACTERS] + CUT_NOTE
    return _FORGED_ID.sub(r"\\u005b", _as_json(text))


def _as_json(text: str) -> str:
    quoted = json.dumps(text.encode("utf-8", "replace").decode(), ensure_ascii=False)
    quoted = quoted.replace("<|", "\\u003c|")
    return _LINE_BREAKS.sub(lambda found: f"\\u{ord(found.group()):04x}", quoted)


def _name(name: str) -> str:
    return _NOT_IN_NAMES.sub(" ", name).strip()[:MAX_NAME_CHARACTERS] or "unknown"
