"""Reads what the Responses API answered, and judges its failures. No I/O.

A reply is text, a refusal, or of no use. What may be tried again is decided in one place:
``retry_delay_seconds``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from services.answer.decisions import Decision

BASE_DELAY_SECONDS = 0.5
MAX_DELAY_SECONDS = 5.0
_RETRIED_STATUSES = frozenset((408, 409, 429, 500, 502, 503, 504, 529))

DECISIONS_SCHEMA: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["decisions"],
    "properties": {
        "decisions": {
            "type": "array",
            "items": {
                "type": "object",
                "additionalProperties": False,
                "required": ["text", "message_id", "owner", "replaces_message_id"],
                "properties": {
                    "text": {"type": "string"},
                    "message_id": {"type": "string"},
                    "owner": {"type": "string"},
                    "replaces_message_id": {"type": "string"},
                },
            },
        }
    },
}


class BadReplyError(Exception):
    """A reply that holds nothing usable. ``retriable`` when another try may go better."""

    def __init__(self, problem: str, *, retriable: bool = False) -> None:
        super().__init__(problem)
        self.problem = problem
        self.retriable = retriable


@dataclass(frozen=True)
class Written:
    """What a model wrote; ``text`` is empty when it refused."""

    text: str
    refused: bool
    model: str


def read_reply(reply: object) -> Written:
    """The text or refusal of a response object in plain form. Raises BadReplyError."""
    if not isinstance(reply, Mapping):
        raise BadReplyError("the reply is no response object")
    status = reply.get("status")
    if status == "failed" or reply.get("error"):
        raise _failure(reply.get("error"))
    model = _sendable(str(reply.get("model") or ""))
    parts = list(_parts(reply))
    filtered = _incomplete_reason(reply) == "content_filter"
    if filtered or any(part.get("type") == "refusal" for part in parts):
        return Written("", refused=True, model=model)
    if status != "completed":
        raise BadReplyError(f"the response is incomplete ({_incomplete_reason(reply) or status})")
    text = _sendable("".join(str(part.get("text") or "") for part in parts if _is_text(part)))
    if not text.strip():
        raise BadReplyError("the response is empty", retriable=True)
    return Written(text, refused=False, model=model)


def read_decisions(text: str) -> list[Decision]:
    """Decisions from structured output. Raises BadReplyError."""
    try:
        return [_decision(one) for one in json.loads(text)["decisions"]]
    except (ValueError, TypeError, KeyError) as error:
        raise BadReplyError("the decisions are not in the form that was asked for") from error


def retry_delay_seconds(
    attempt: int, *, status: int | None, code: str | None, retry_after_seconds: float | None
) -> float | None:
    """Seconds to wait before the next try, or None when it would be in vain.

    ``attempt`` counts from 0; ``status`` is None when no answer came at all. An exhausted quota is
    never tried again, whatever its status.
    """
    if code == "insufficient_quota":
        return None
    if status is not None and status not in _RETRIED_STATUSES:
        return None
    if retry_after_seconds is not None:
        return retry_after_seconds if retry_after_seconds <= MAX_DELAY_SECONDS else None
    return min(MAX_DELAY_SECONDS, BASE_DELAY_SECONDS * 2.0**attempt)


def retry_after_seconds(headers: Mapping[str, str]) -> float | None:
    """The waiting time that a reply names, from ``retry-after-ms`` or ``retry-after``."""
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            seconds = float(headers[name]) * unit
        except (KeyError, ValueError):
            continue
        if seconds >= 0:
            return seconds
    return None


def _failure(error: object) -> BadReplyError:
    code = str(error.get("code") or "unknown") if isinstance(error, Mapping) else "unknown"
    problem = _sendable(f"the response failed ({code})")
    return BadReplyError(problem, retriable=code == "server_error")


def _incomplete_reason(reply: Mapping[str, Any]) -> str:
    details = reply.get("incomplete_details")
    return _sendable(str(details.get("reason") or "")) if isinstance(details, Mapping) else ""


def _parts(reply: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    output = reply.get("output")
    for item in output if isinstance(output, list) else ():
        content = item.get("content") if isinstance(item, Mapping) else None
        yield from (part for part in content or () if isinstance(part, Mapping))


def _is_text(part: Mapping[str, Any]) -> bool:
    return part.get("type") == "output_text"


def _decision(one: Mapping[str, Any]) -> Decision:
    return Decision(
        text=_string(one, "text"),
        message_id=_string(one, "message_id"),
        owner=_string(one, "owner"),
        replaces_message_id=_string(one, "replaces_message_id"),
    )


def _string(one: Mapping[str, Any], name: str) -> str:
    value = one[name]
    if not isinstance(value, str):
        raise TypeError(name)
    return _sendable(value).strip()


def _sendable(text: str) -> str:
    """The text with ``?`` for each half of a character, which JSON can carry and UTF-8 can not."""
    return text.encode("utf-8", "replace").decode()
