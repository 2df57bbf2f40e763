"""Decisions found in messages, checked and printed one line each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC

from services.answer.citations import UNKNOWN_CITATION, Checked, Outcome, check, unverified
from services.corpus import Message

NO_DECISION = "No decision was made in these messages."


@dataclass(frozen=True)
class Decision:
    """One decision; ``owner`` and ``replaces_message_id`` are empty when not stated."""

    text: str
    message_id: str
    owner: str = ""
    replaces_message_id: str = ""


def linked(found: Sequence[Decision], again: Sequence[Decision]) -> list[Decision]:
    """Decisions found in parts, with what ``again``, read of all of them, says they replaced."""
    replaced = {one.message_id: one.replaces_message_id for one in again}
    return [
        one
        if one.replaces_message_id
        else replace(one, replaces_message_id=replaced.get(one.message_id, ""))
        for one in found
    ]


def check_decisions(
    decisions: Sequence[Decision], messages: Sequence[Message]
) -> tuple[Checked, list[Decision]]:
    """The decisions as text and as data, oldest first; one that does not hold refuses all.

    Every id must be one of ``messages``; every sentence passes the citation check beside its own
    message, so links and quotations in it are checked too.
    """
    if not decisions:
        return Checked(Outcome.ABSTAINED, NO_DECISION, (), NO_DECISION), []
    by_id = {message.message_id: message for message in messages}
    kept: list[Decision] = []
    for decision in decisions:
        named = [decision.message_id, decision.replaces_message_id]
        if any(message_id not in by_id for message_id in named if message_id or not named[0]):
            return unverified(UNKNOWN_CITATION), []
        sentence = check(f"{decision.text} [{decision.message_id}]", messages)
        if sentence.outcome is not Outcome.ANSWERED:
            return unverified(sentence.reason), []
        kept.append(replace(decision, text=_without_end(sentence.text, decision.message_id)))
    kept.sort(key=lambda decision: by_id[decision.message_id].posted_at)
    lines = [_line(decision, by_id) for decision in kept]
    checked = check("\n".join(lines), messages)
    return checked, kept if checked.outcome is Outcome.ANSWERED else []


def _without_end(text: str, message_id: str) -> str:
    return text.removesuffix(f"[{message_id}]").rstrip()


def _line(decision: Decision, by_id: dict[str, Message]) -> str:
    owner = f" Owner: {decision.owner}." if decision.owner else ""
    line = f"- {_day(by_id[decision.message_id])}: {decision.text}{owner} [{decision.message_id}]"
    replaced = by_id.get(decision.replaces_message_id)
    if replaced is None:
        return line
    return f"{line} (replaces what was said on {_day(replaced)} [{replaced.message_id}])"


def _day(message: Message) -> str:
    return message.posted_at.astimezone(UTC).strftime("%Y-%m-%d")
