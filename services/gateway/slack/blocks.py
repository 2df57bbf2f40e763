"""Block Kit: a reply laid out within Slack's limits. Pure.

Text that people or a model wrote is escaped, so that it can mention nobody and hide no link; links
are built from permalinks alone. https://docs.slack.dev/reference/block-kit/blocks
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from recall.corpus.v1 import corpus_pb2
from services.corpus import instant
from services.gateway.render import blocks as segmented
from services.gateway.slack.buttons import (
    VALUE_CHARACTERS,
    Shared,
    judgement_value,
    numbered_as_ids,
    share_value,
)
from services.gateway.slack.events import ASK_AGAIN, HELPFUL, MARK_CORRECTED, NOT_HELPFUL, SHARE
from services.gateway.slack.replies import FOUND, SUPPRESSED, TOLD, Reply

Json = dict[str, Any]

SECTION_CHARACTERS = 3_000
# A whole message holds about 13,200 characters; buttons, notes and markup need some of them.
ANSWER_CHARACTERS = 6_500
SOURCE_CHARACTERS = 4_500
NOTE_CHARACTERS = 1_200
MOST_ELEMENTS = 10
EXCERPT_CHARACTERS = 160
FALLBACK_CHARACTERS = 300
PIECE_CHARACTERS = 400
LINK_CHARACTERS = 400

LEFT_OUT = "… The rest is left out here; ask for less at once to see it."
MORE_SOURCES = "… and {number} more."
ASK_AGAIN_LABEL = "Ask again"

_PIECES = re.compile(rf"\s{{0,40}}\S{{1,{PIECE_CHARACTERS}}}|\s{{1,{PIECE_CHARACTERS}}}")


@dataclass(frozen=True)
class Layout:
    """``delivery_id`` goes into the buttons; ``can_share``: whether others are there too."""

    delivery_id: str
    can_share: bool


def lay_out(reply: Reply, layout: Layout) -> list[Json]:
    """The blocks of a reply."""
    numbers = [message.message_id for message in reply.sources]
    links = [_link(message, f"[{n}]") for n, message in enumerate(reply.sources, start=1)]
    shown = _bounded(_text_lines(reply, numbers, links), ANSWER_CHARACTERS, LEFT_OUT)
    return [
        *_sections(shown),
        *_sections(_source_lines(reply.sources)),
        *_notes(reply),
        *_buttons(reply, layout),
    ]


def fallback_text(reply: Reply) -> str:
    """What notifications and screen readers get."""
    return escape(_clipped(reply.text, FALLBACK_CHARACTERS))


def escape(text: str) -> str:
    """Text as mrkdwn that is nothing but text."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def lay_out_shared(shared: Shared, sources: Sequence[corpus_pb2.Message], by: str) -> list[Json]:
    """An answer that ``by`` (a user id) shows to a channel."""
    ids = [message.message_id for message in sources]
    text = numbered_as_ids(shared.text, ids)
    links = [_link(message, f"[{n}]") for n, message in enumerate(sources, start=1)]
    asked = [f"<@{by}> asked: ", *_atoms(_clipped(shared.question, FALLBACK_CHARACTERS))]
    lines = [asked, *_cited_lines(text, ids, links)]
    return [
        *_sections(_bounded(lines, ANSWER_CHARACTERS, LEFT_OUT)),
        *_sections(_source_lines(sources)),
    ]


def correction_view(channel_id: str, message_ts: str) -> Json:
    """The modal of "Mark as corrected by…"."""
    link = {
        "type": "plain_text_input",
        "action_id": "link",
        "placeholder": _plain("https://….slack.com/archives/…"),
    }
    return {
        "type": "modal",
        "callback_id": MARK_CORRECTED,
        "private_metadata": f"{channel_id}:{message_ts}",
        "title": _plain("Mark as corrected"),
        "submit": _plain("Save"),
        "close": _plain("Cancel"),
        "blocks": [
            {
                "type": "input",
                "block_id": "newer",
                "label": _plain("Link of the newer message that replaces this one"),
                "element": link,
            }
        ],
    }


def _text_lines(reply: Reply, ids: Sequence[str], links: Sequence[str]) -> list[list[str]]:
    if reply.outcome == TOLD:
        # Our own words, with their own markup.
        return [[line] for line in reply.text.splitlines()]
    lines = _cited_lines(reply.text, ids, links)
    if reply.reason and reply.reason != reply.text:
        lines.append(_atoms(reply.reason))
    return lines


def _cited_lines(text: str, ids: Sequence[str], links: Sequence[str]) -> list[list[str]]:
    return [_line(block, links) for block in segmented(text, ids)]


def _line(block: Json, links: Sequence[str]) -> list[str]:
    atoms = ["• "] if block["kind"] == "item" else []
    for segment in block["segments"]:
        if "citations" in segment:
            atoms += [f" {links[number - 1]}" for number in segment["citations"]]
        else:
            atoms += _atoms(segment["text"])
    return atoms


def _atoms(text: str) -> list[str]:
    """Escaped pieces that may be put into different sections, each far below a section's limit."""
    return [escape(piece) for piece in _PIECES.findall(text)]


def _source_lines(sources: Sequence[corpus_pb2.Message]) -> list[list[str]]:
    lines: list[list[str]] = []
    used = 0
    for number, message in enumerate(sources, start=1):
        line = [f"*{number}.* ", _link(message, _label(message)), " – ", *_atoms(_excerpt(message))]
        used += sum(map(len, line))
        if used > SOURCE_CHARACTERS:
            lines.append([MORE_SOURCES.format(number=len(sources) - number + 1)])
            break
        lines.append(line)
    return lines


def _label(message: corpus_pb2.Message) -> str:
    day = f"{instant(message.posted_at):%Y-%m-%d %H:%M}"
    return f"#{_clipped(message.channel_name, 80)} · {_clipped(message.author_name, 80)} · {day}"


def _link(message: corpus_pb2.Message, label: str) -> str:
    """A link to the exact message; the label alone when it has no link of a safe shape."""
    url = message.permalink
    safe = url.startswith("https://") and not re.search(r"[\s<>|]", url)
    # A bar would end the link's address.
    shown = escape(label).replace("|", "¦")
    return f"<{url}|{shown}>" if safe and len(url) <= LINK_CHARACTERS else shown


def _excerpt(message: corpus_pb2.Message) -> str:
    return _clipped(" ".join(message.text.split()), EXCERPT_CHARACTERS)


def _bounded(lines: Iterable[list[str]], most: int, ending: str) -> list[list[str]]:
    """The lines up to ``most`` characters, cut between pieces; ``ending`` follows a cut."""
    kept: list[list[str]] = []
    left = most
    for line in lines:
        fitting: list[str] = []
        for atom in line:
            left -= len(atom)
            if left < 0:
                return [*kept, fitting, [ending]]
            fitting.append(atom)
        kept.append(fitting)
    return kept


def _sections(lines: Iterable[list[str]]) -> list[Json]:
    """Lines as few sections, broken only between pieces."""
    texts = [""]
    for line in lines:
        for position, atom in enumerate([*line, "\n"]):
            if len(texts[-1]) + len(atom) > SECTION_CHARACTERS:
                texts.append("")
            texts[-1] += atom if position or atom.strip() else atom.lstrip()
    return [_section(text.strip()) for text in texts if text.strip()]


def _section(text: str) -> Json:
    return {"type": "section", "text": {"type": "mrkdwn", "text": text}}


def _notes(reply: Reply) -> list[Json]:
    if not reply.notes:
        return []
    lines = _bounded(map(_atoms, reply.notes), NOTE_CHARACTERS, "…")
    texts = ["".join(line).strip() for line in lines]
    elements = [{"type": "mrkdwn", "text": text} for text in texts if text][:MOST_ELEMENTS]
    return [{"type": "context", "elements": elements}] if elements else []


def _buttons(reply: Reply, layout: Layout) -> list[Json]:
    buttons: list[Json] = []
    if reply.outcome == SUPPRESSED:
        again = 0 < len(reply.question) <= VALUE_CHARACTERS
        buttons = [_button(ASK_AGAIN, ASK_AGAIN_LABEL, reply.question)] if again else []
    elif reply.outcome != TOLD:
        value = judgement_value(layout.delivery_id, reply.question)
        shared = share_value(layout.delivery_id, reply) if _is_shareable(reply, layout) else ""
        buttons += [_button(SHARE, "Share to channel", shared)] if shared else []
        buttons += [_button(HELPFUL, "Helpful", value), _button(NOT_HELPFUL, "Not helpful", value)]
    return [{"type": "actions", "elements": buttons}] if buttons else []


def _is_shareable(reply: Reply, layout: Layout) -> bool:
    return layout.can_share and reply.can_share and reply.outcome != FOUND


def _button(action_id: str, label: str, value: str) -> Json:
    return {"type": "button", "action_id": action_id, "text": _plain(label), "value": value}


def _plain(text: str) -> Json:
    return {"type": "plain_text", "text": text}


def _clipped(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"
