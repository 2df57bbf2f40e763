"""The rich_text block that Slack adds to what people write, from the text as Slack stores it."""

from __future__ import annotations

import re

from tests.fakes.slack_server.state import Json

_MARKUP = re.compile(r"<([^<>]+)>")


def unescape(text: str) -> str:
    """One round of Slack's three entities."""
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def escape(text: str) -> str:
    """Plain text as Slack stores it."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def rich_text_blocks(text: str, block_id: str) -> list[Json]:
    """One rich_text block with text, mention and link elements; no text, no block."""
    elements: list[Json] = []
    position = 0
    for found in _MARKUP.finditer(text):
        elements += _plain(text[position : found.start()])
        elements.append(_element(found.group(1)))
        position = found.end()
    elements += _plain(text[position:])
    if not elements:
        return []
    section = {"type": "rich_text_section", "elements": elements}
    return [{"type": "rich_text", "block_id": block_id, "elements": [section]}]


def _plain(text: str) -> list[Json]:
    return [{"type": "text", "text": unescape(text)}] if text else []


def _element(body: str) -> Json:
    target, _, label = body.partition("|")
    if target.startswith("@"):
        return {"type": "user", "user_id": target[1:]}
    if target.startswith("#"):
        return {"type": "channel", "channel_id": target[1:]}
    if target.startswith("!subteam^"):
        return {"type": "usergroup", "usergroup_id": target.removeprefix("!subteam^")}
    if target.startswith("!"):
        return {"type": "broadcast", "range": target[1:]}
    link: Json = {"type": "link", "url": unescape(target)}
    return link | ({"text": unescape(label)} if label else {})
