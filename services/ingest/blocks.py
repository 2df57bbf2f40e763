"""Words of Slack blocks: rich text with its lists and quotes, layout blocks, unknown ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from services.ingest.markup import (
    Names,
    channel_mention,
    date_text,
    decode_entities,
    group_mention,
    link,
    mention,
    plain,
)

Json = Mapping[str, object]

# Real blocks nest less than ten deep; what lies deeper than this is a broken record.
MAX_DEPTH = 40
# Controls, not words of a message.
_CONTROLS = frozenset({"actions", "context_actions", "input", "divider", "button", "overflow"})
# Keys that carry words, in the order a reader meets them. Others are addresses, ids and styling.
_WORD_KEYS = (
    "title",
    "subtitle",
    "text",
    "description",
    "body",
    "author_name",
    "fields",
    "alt_text",
    "elements",
    "accessory",
    "blocks",
)


def blocks_text(blocks: Sequence[Json], names: Names) -> str:
    """Words of a message's blocks, one block after the other, a line each at least."""
    return _lines([_words(block, names, 0) for block in blocks])


def dicts(value: object) -> list[Json]:
    """The objects of a JSON list; empty for anything else."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def string(value: object) -> str:
    """A JSON string, or a whole number as one; empty for anything else."""
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        return ""
    return str(value)


def _words(node: object, names: Names, depth: int) -> str:
    """Words of a block, an element, a list of them, or a mrkdwn string."""
    if depth > MAX_DEPTH:
        return ""
    if isinstance(node, list):
        return _lines([_words(item, names, depth + 1) for item in node])
    if not isinstance(node, dict):
        return plain(string(node), names)
    kind = string(node.get("type"))
    if kind in _CONTROLS:
        return ""
    if kind in _INLINE:
        return _INLINE[kind](node, names)
    layout = _LAYOUTS.get(kind)
    return layout(node, names, depth) if layout else _any_words(node, names, depth)


def _any_words(node: Json, names: Names, depth: int) -> str:
    return _lines([_words(node[key], names, depth + 1) for key in _WORD_KEYS if node.get(key)])


def _lines(parts: list[str]) -> str:
    return "\n".join(part for part in parts if part)


def _section(node: Json, names: Names, depth: int) -> str:
    """Inline elements on one line."""
    return "".join(_words(element, names, depth + 1) for element in dicts(node.get("elements")))


def _list(node: Json, names: Names, depth: int) -> str:
    """List items, a line each, indented as Slack shows them; a list inside is no item."""
    indent, offset = node.get("indent"), node.get("offset")
    margin = "  " * (min(indent, 9) if isinstance(indent, int) else 0)
    number = offset if isinstance(offset, int) else 0
    lines: list[str] = []
    for item in dicts(node.get("elements")):
        words = _words(item, names, depth + 1)
        if item.get("type") == "rich_text_list":
            lines += [f"{margin}  {line}" for line in words.splitlines()]
        elif words:
            number += 1
            mark = f"{number}." if node.get("style") == "ordered" else "•"
            lines.append(f"{margin}{mark} {words}")
    return _lines(lines)


def _quote(node: Json, names: Names, depth: int) -> str:
    return "> " + _section(node, names, depth).replace("\n", "\n> ")


def _preformatted(node: Json, names: Names, depth: int) -> str:
    return f"```\n{_section(node, names, depth)}\n```"


def _table(node: Json, names: Names, depth: int) -> str:
    """A table, a line a row, cells separated by bars."""
    rows = node.get("rows")
    rows = [row for row in rows if isinstance(row, list)] if isinstance(rows, list) else []
    return _lines([" | ".join(_words(cell, names, depth + 1) for cell in row) for row in rows])


def _literal(node: Json, names: Names, depth: int) -> str:
    """Text that is not mrkdwn: nothing in it is markup or an entity."""
    return string(node.get("text"))


_LAYOUTS: dict[str, Callable[[Json, Names, int], str]] = {
    "rich_text_section": _section,
    "rich_text_list": _list,
    "rich_text_quote": _quote,
    "rich_text_preformatted": _preformatted,
    "raw_text": _literal,
    "table": _table,
}


_INLINE: dict[str, Callable[[Json, Names], str]] = {
    "text": lambda element, names: string(element.get("text")),
    "link": lambda element, names: link(
        decode_entities(string(element.get("url"))), string(element.get("text"))
    ),
    "user": lambda element, names: mention(string(element.get("user_id")), "", names),
    "channel": lambda element, names: channel_mention(string(element.get("channel_id")), "", names),
    "usergroup": lambda element, names: group_mention(string(element.get("name"))),
    "broadcast": lambda element, names: f"@{string(element.get('range')) or 'channel'}",
    "emoji": lambda element, names: f":{string(element.get('name'))}:",
    "date": lambda element, names: (
        string(element.get("fallback")) or date_text(string(element.get("timestamp")))
    ),
    "color": lambda element, names: string(element.get("value")),
    "team": lambda element, names: "",
}
