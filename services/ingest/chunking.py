"""Chunks of one thread: a chunk a message, and the thread in pieces of at most 600 tokens.

A message renders as ``[#channel · 2026-03-02 09:14 · author] text``: header and text on one
line, so that every line of a thread says who wrote it and when. Times are UTC. A thread chunk
is its messages' renderings, one a line.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from services.corpus import Message, Source

CHUNKER_VERSION = "1"
MAX_CHUNK_TOKENS = 600


class Encoder(Protocol):
    """A tokenizer. ``decode(encode(text))`` is ``text``."""

    def encode(self, text: str) -> list[int]:
        """Tokens of a text, control-token look-alikes as ordinary text."""
        ...

    def decode(self, tokens: list[int]) -> str:
        """Text of tokens."""
        ...


@dataclass(frozen=True)
class Chunk:
    """What is indexed. ``kind`` is ``message``, ``thread``, or one of these with ``/n``, n >= 2.

    ``message_ids`` are the messages whose rendering the text shows, in order; the text of a
    message chunk of one piece is ``render``'s.
    """

    chunk_id: str
    kind: str
    message_ids: tuple[str, ...]
    text: str
    token_count: int


def render(message: Message) -> str:
    """``[#channel · YYYY-MM-DD HH:MM · author] text``, the time in UTC."""
    raise NotImplementedError


def chunk_thread(messages: Sequence[Message], source: Source, encoder: Encoder) -> list[Chunk]:
    """All chunks of one thread, message chunks first; ids are distinct and repeatable.

    ``messages`` are every stored message of the thread, in any order; one message makes no thread
    chunk. Chunks of Slack content hold at most ``MAX_CHUNK_TOKENS`` tokens.
    """
    raise NotImplementedError
