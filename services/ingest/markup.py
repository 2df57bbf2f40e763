"""Slack text to readable text: what a person would have seen, and nothing that is secret."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

UNKNOWN_PERSON = "unknown person"
UNKNOWN_CHANNEL = "unknown channel"


class Names(Protocol):
    """Current names by id; empty when unknown."""

    def person_name(self, person_id: str) -> str:
        """Name of a person or bot."""
        ...

    def channel_name(self, channel_id: str) -> str:
        """Name of a channel, without ``#``."""
        ...


def storable(text: str) -> str:
    """A text that PostgreSQL and UTF-8 accept: without NUL, lone surrogates replaced."""
    return text.replace("\0", "").encode("utf-8", "replace").decode("utf-8")


def readable_text(record: Mapping[str, object], names: Names) -> str:
    """All words of one Slack message, readable and storable; empty when it has none."""
    raise NotImplementedError


def plain(mrkdwn: str, names: Names) -> str:
    """One mrkdwn string as readable text."""
    raise NotImplementedError
