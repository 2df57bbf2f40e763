"""Slack's inline markup to readable text: names for ids, links with their targets, no secrets."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Protocol

UNKNOWN_PERSON = "unknown person"
UNKNOWN_CHANNEL = "unknown channel"
UNKNOWN_GROUP = "unknown group"

_ANGLED = re.compile(r"<([^<>\n]+)>")
_ENTITY = re.compile(r"&(amp|lt|gt);")
_ENTITY_CHARACTER = {"amp": "&", "lt": "<", "gt": ">"}
_LINK = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:[^\s]")
_ADDRESS_SCHEME = re.compile(r"(?:mailto|tel):", re.IGNORECASE)
_WEB_SCHEME = re.compile(r"https?://", re.IGNORECASE)

# Kinds of Slack tokens; "xoxo-" begins ordinary words too, so it needs digits like a pasted one.
_TOKEN = r"xox[a-np-z](?:\.xox[a-z])*-[\w%\-]+"
_QUERY_TOKEN = re.compile(rf"([?&])[A-Za-z_]+={_TOKEN}(&?)", re.IGNORECASE)
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*://[^\s<>]+")
_ANY_TOKEN = re.compile(_TOKEN, re.IGNORECASE)
_PASTED_TOKEN = re.compile(r"xox[a-z](?:\.xox[a-z])*-(?=[\w\-]*\d)[\w\-]{8,}", re.IGNORECASE)

# Controls, line and paragraph separators, embeddings, overrides and isolates.
_NOT_IN_NAMES = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Names(Protocol):
    """Current names by id; empty when unknown."""

    def person_name(self, person_id: str) -> str:
        """Name of a person or bot."""
        ...

    def channel_name(self, channel_id: str) -> str:
        """Name of a channel as any reader may see it, without ``#``."""
        ...


def storable(text: str) -> str:
    """A text that PostgreSQL and UTF-8 accept: without NUL, lone surrogates replaced by ``?``."""
    return text.replace("\0", "").encode("utf-8", "replace").decode("utf-8")


def one_line(name: str) -> str:
    """A name as one storable line: controls and marks that turn the reading direction go.

    Names stand in headers that say who wrote what and where; none may begin a line of its own.
    """
    return " ".join(_NOT_IN_NAMES.sub(" ", storable(name)).split())


def without_tokens(text: str) -> str:
    """The text without Slack tokens.

    A query value that is a token (``?t=xoxe-…`` of a file link) leaves its URL with its name; any
    other token in a URL is cut out, and one pasted as text becomes ``[token removed]``.
    """
    if "xox" not in text.lower():
        return text
    text = _QUERY_TOKEN.sub(_join_query, text)
    text = _URL.sub(lambda url: _ANY_TOKEN.sub("", url.group()), text)
    return _PASTED_TOKEN.sub("[token removed]", text)


def _join_query(value: re.Match[str]) -> str:
    return value.group(1) if value.group(2) else ""


def decode_entities(text: str) -> str:
    """One round of Slack's three entities: ``&amp;lt;`` becomes ``&lt;`` and stays."""
    return _ENTITY.sub(lambda entity: _ENTITY_CHARACTER[entity.group(1)], text)


def plain(mrkdwn: str, names: Names) -> str:
    """One mrkdwn string as readable text: mentions, links and dates spelled out, decoded once.

    Emphasis marks and emoji names stay as typed. Tokens are still in it (``without_tokens``).
    """
    parts: list[str] = []
    end = 0
    for angled in _ANGLED.finditer(mrkdwn):
        parts.append(decode_entities(mrkdwn[end : angled.start()]))
        parts.append(_spelled_out(angled.group(1), names))
        end = angled.end()
    parts.append(decode_entities(mrkdwn[end:]))
    return "".join(parts)


def _spelled_out(inside: str, names: Names) -> str:
    target, _, label = inside.partition("|")
    label = decode_entities(label).strip()
    match target[:1]:
        case "@":
            return mention(target[1:], label, names)
        case "#":
            return channel_mention(target[1:], label, names)
        case "!":
            return _special_mention(target[1:], label)
    if _LINK.match(target):
        return link(decode_entities(target), label)
    return decode_entities(f"<{inside}>")


def mention(person_id: str, label: str, names: Names) -> str:
    """``@`` and the person's current name, else the label; an id is never shown."""
    return "@" + (names.person_name(person_id) or label.lstrip("@") or UNKNOWN_PERSON)


def channel_mention(channel_id: str, label: str, names: Names) -> str:
    """``#`` and the channel's current name, else the label; an id is never shown."""
    return "#" + (names.channel_name(channel_id) or label.lstrip("#") or UNKNOWN_CHANNEL)


def _special_mention(target: str, label: str) -> str:
    name, _, rest = target.partition("^")
    if name == "subteam":
        return group_mention(label)
    if name == "date":
        return label or date_text(rest.partition("^")[0])
    return label or f"@{decode_entities(name)}"


def group_mention(label: str) -> str:
    """``@`` and a user group's label."""
    return "@" + (label.lstrip("@") or UNKNOWN_GROUP)


def date_text(seconds: str) -> str:
    """``YYYY-MM-DD HH:MM UTC`` of whole epoch seconds; empty when they are none."""
    if not re.fullmatch(r"\d{1,11}", seconds, re.ASCII):
        return ""
    return f"{_EPOCH + timedelta(seconds=int(seconds)):%Y-%m-%d %H:%M} UTC"


def link(target: str, label: str) -> str:
    """``label (target)``, or the target alone when the label says no more than it.

    Mail and telephone addresses stand without their scheme.
    """
    target = _ADDRESS_SCHEME.sub("", target, count=1)
    if not target or not label or _bare(label) == _bare(target):
        return target or label
    return f"{label} ({target})"


def _bare(address: str) -> str:
    return _WEB_SCHEME.sub("", address, count=1).rstrip("/").lower()
