"""Slack's limits on messages and views; raises SlackError as the Web API does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.fakes.slack_server.state import Json, SlackError

MESSAGE_BLOCKS = 50
VIEW_BLOCKS = 100
MESSAGE_TEXT = 40_000
MESSAGE_CHARACTERS = 13_200
VIEW_TITLE = 24
PRIVATE_METADATA = 3_000
_TEXT_LIMITS = {"section": 3_000, "header": 150, "markdown": 12_000}
_COUNT_LIMITS = {
    "section": ("fields", 10),
    "context": ("elements", 10),
    "actions": ("elements", 25),
}
_FIELD_TEXT = 2_000
_BUTTON_LIMITS = {"action_id": 255, "value": 2_000, "url": 3_000}
_BUTTON_TEXT = 75


def check_message(text: str, blocks: Any, attachments: Any) -> None:
    """Refuse an empty or too large message."""
    if not text and not blocks and not attachments:
        raise SlackError("no_text")
    if len(text) > MESSAGE_TEXT:
        raise SlackError("msg_too_long")
    check_blocks(blocks or [], MESSAGE_BLOCKS)
    if sum(len(part) for part in _texts(blocks or [])) > MESSAGE_CHARACTERS:
        raise SlackError("msg_blocks_too_long")


def check_view(view: Any) -> None:
    """Refuse a modal or Home tab that Slack would refuse."""
    if not isinstance(view, dict) or view.get("type") not in ("modal", "home"):
        raise SlackError("invalid_arguments")
    title = (view.get("title") or {}).get("text", "")
    if view["type"] == "modal" and not 0 < len(title) <= VIEW_TITLE:
        raise _invalid(f"title must have 1 to {VIEW_TITLE} characters", "invalid_arguments")
    if len(view.get("private_metadata", "")) > PRIVATE_METADATA:
        raise _invalid("private_metadata is too long", "invalid_arguments")
    check_blocks(view.get("blocks") or [], VIEW_BLOCKS)


def check_blocks(blocks: Any, most: int) -> None:
    """Refuse blocks beyond a count or with a part beyond its limit."""
    if not isinstance(blocks, list) or not all(isinstance(block, dict) for block in blocks):
        raise SlackError("invalid_blocks_format")
    if len(blocks) > most:
        raise _invalid(f"no more than {most} items allowed")
    for position, block in enumerate(blocks):
        fault = next(_faults(block), "")
        if fault:
            raise _invalid(f"{fault} [json-pointer:/blocks/{position}]")
    ids = [block["block_id"] for block in blocks if block.get("block_id")]
    if len(ids) != len(set(ids)):
        raise _invalid("block_id already exists")


def _faults(block: Json) -> Iterator[str]:
    kind = str(block.get("type", ""))
    text = _text_of(block.get("text"))
    if kind in _TEXT_LIMITS and len(text) > _TEXT_LIMITS[kind]:
        yield f"must be less than {_TEXT_LIMITS[kind] + 1} characters"
    if kind in ("header", "markdown") and not text:
        yield "text must not be empty"
    if kind == "section" and not text and not block.get("fields"):
        yield "a section needs text or fields"
    if len(str(block.get("block_id", ""))) > 255:
        yield "block_id must be less than 256 characters"
    name, most = _COUNT_LIMITS.get(kind, ("", 0))
    if name and len(block.get(name) or []) > most:
        yield f"no more than {most} {name} allowed"
    if any(len(_text_of(part)) > _FIELD_TEXT for part in block.get("fields") or []):
        yield f"a field must be less than {_FIELD_TEXT + 1} characters"
    yield from _element_faults(block)


def _element_faults(block: Json) -> Iterator[str]:
    if block.get("type") in ("context", "actions") and not block.get("elements"):
        yield "elements must not be empty"
    for element in [*(block.get("elements") or []), block.get("accessory") or {}]:
        if element.get("type") != "button":
            continue
        if not 0 < len(_text_of(element.get("text"))) <= _BUTTON_TEXT:
            yield f"a button's text must have 1 to {_BUTTON_TEXT} characters"
        for name, most in _BUTTON_LIMITS.items():
            if len(str(element.get(name, ""))) > most:
                yield f"{name} must be less than {most + 1} characters"


def _text_of(value: Any) -> str:
    return str(value.get("text", "")) if isinstance(value, dict) else str(value or "")


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for name, part in value.items():
            if name == "text" and isinstance(part, str):
                yield part
            else:
                yield from _texts(part)
    elif isinstance(value, list):
        for part in value:
            yield from _texts(part)


def _invalid(message: str, code: str = "invalid_blocks") -> SlackError:
    return SlackError(code, response_metadata={"messages": [f"[ERROR] {message}"]})
