"""Chunks of one thread: a chunk a message, and the thread in pieces of at most 600 tokens.

A message renders as ``[#channel · 2026-03-02 09:14 · author] text``: header and text on one
line, so that every line of a thread says who wrote it and when. Times are UTC. A thread chunk
is its messages' renderings, one below the other.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import Protocol

from services.corpus import Message, Source
from services.ingest.threads import in_order

CHUNKER_VERSION = "1"
MAX_CHUNK_TOKENS = 600
_SEPARATOR = "\n"
# Characters encoded at first to find where 600 tokens end; doubled while they are too few.
_SPLIT_CHARACTERS = 8 * MAX_CHUNK_TOKENS
# Two a piece: enough for a root of a million characters, about 10 MB of memory.
_REMEMBERED_TEXTS = 1_024


class Encoder(Protocol):
    """A tokenizer. ``decode(encode(text))`` is ``text``."""

    def encode(self, text: str) -> list[int]:
        """Tokens of a text, control-token look-alikes as ordinary text."""
        ...

    def decode(self, tokens: list[int]) -> str:
        """Text of tokens; half a character becomes a replacement character."""
        ...


@dataclass(frozen=True)
class Chunk:
    """What is indexed. ``kind`` is ``message``, ``thread``, or one of these with ``/n``, n >= 2.

    ``message_ids`` are the messages whose rendering the text shows, whole or in part, in order.
    """

    chunk_id: str
    kind: str
    message_ids: tuple[str, ...]
    text: str
    token_count: int


@dataclass(frozen=True)
class _Piece:
    """A text to index and the messages it shows, before it has an id."""

    message_ids: tuple[str, ...]
    text: str


def render(message: Message) -> str:
    """``[#channel · YYYY-MM-DD HH:MM · author] text``, the time in UTC."""
    posted_at = message.posted_at.astimezone(UTC)
    author = message.author_name or message.author_id
    return f"[#{message.channel_name} · {posted_at:%Y-%m-%d %H:%M} · {author}] {message.text}"


def chunk_id(kind: str, message_ids: Iterable[str]) -> str:
    """SHA-256 (hex) over chunker version, kind and message ids."""
    return hashlib.sha256("\n".join((CHUNKER_VERSION, kind, *message_ids)).encode()).hexdigest()


def chunk_thread(messages: Sequence[Message], source: Source, encoder: Encoder) -> list[Chunk]:
    """All chunks of one thread, message chunks first; ids are distinct and repeatable.

    ``messages`` are every stored message of the thread, in any order; one message makes no thread
    chunk. Chunks of Slack content hold at most ``MAX_CHUNK_TOKENS`` tokens; other sources keep a
    message, or a root with one reply, whole. The result replaces every chunk of the thread: when
    a message changes, pieces of its windows move that do not show it.
    """
    thread = in_order(messages)
    encoder = _Remembering(encoder)
    alone = [[message] for message in thread]
    windows = thread_windows(thread, encoder)
    is_split = source is Source.SLACK
    return [
        *_identified("message", _pieces(alone, encoder, is_split), encoder),
        *_identified("thread", _pieces(windows, encoder, is_split), encoder),
    ]


def thread_windows(thread: Sequence[Message], encoder: Encoder) -> list[list[Message]]:
    """The messages of each thread chunk: the root, then as many replies as 600 tokens hold.

    The window after a full one starts with the root and the previous reply, or with the root
    alone where those and the next reply do not fit. A root and one reply are a window whatever
    their length.
    """
    if len(thread) < 2:
        return []
    root, *replies = thread
    windows = [[root, replies[0]]]
    for previous, reply in pairwise(replies):
        if _fits([*windows[-1], reply], encoder):
            windows[-1].append(reply)
        elif _fits([root, previous, reply], encoder):
            windows.append([root, previous, reply])
        else:
            windows.append([root, reply])
    return windows


def _fits(window: Sequence[Message], encoder: Encoder) -> bool:
    text = _joined(window)
    return _piece_end(text, 0, encoder) == len(text)


def _joined(window: Sequence[Message]) -> str:
    return _SEPARATOR.join(render(message) for message in window)


def _pieces(
    windows: Iterable[Sequence[Message]], encoder: Encoder, is_split: bool
) -> Iterator[_Piece]:
    """The windows' texts, split where asked.

    A piece that an earlier window had is left out: windows under a root of more than 600 tokens
    would each repeat the root's first pieces.
    """
    seen: set[_Piece] = set()
    for window in windows:
        pieces = list(_split_window(window, encoder)) if is_split else [_whole(window)]
        yield from (piece for piece in pieces if piece not in seen)
        seen.update(pieces)


def _whole(window: Sequence[Message]) -> _Piece:
    return _Piece(tuple(message.message_id for message in window), _joined(window))


def _split_window(window: Sequence[Message], encoder: Encoder) -> Iterator[_Piece]:
    """Pieces of at most 600 tokens, each with the messages it overlaps."""
    lengths = [len(render(message)) + len(_SEPARATOR) for message in window]
    starts = [0, *accumulate(lengths)][:-1]
    end = 0
    for text in split_text(_joined(window), encoder):
        first = bisect_right(starts, end) - 1
        end += len(text)
        shown = window[first : bisect_right(starts, end - 1)]
        yield _Piece(tuple(message.message_id for message in shown), text)


def split_text(text: str, encoder: Encoder) -> Iterator[str]:
    """The text in pieces of at most 600 tokens that together are the text.

    Each is as long as fits, ends where a token ends, and holds whole characters only.
    """
    start = 0
    while start < len(text):
        end = _piece_end(text, start, encoder)
        yield text[start:end]
        start = end


def _piece_end(text: str, start: int, encoder: Encoder) -> int:
    """End of the longest piece from ``start`` of at most 600 tokens; one character at least."""
    characters = _SPLIT_CHARACTERS
    tokens = encoder.encode(text[start : start + characters])
    while len(tokens) <= MAX_CHUNK_TOKENS:
        if start + characters >= len(text):
            return len(text)
        characters *= 2
        tokens = encoder.encode(text[start : start + characters])
    for count in range(MAX_CHUNK_TOKENS, 0, -1):
        piece = encoder.decode(tokens[:count])
        # A cut inside a character decodes to something else; a cut inside a word can need more
        # tokens than it took from the whole.
        if text.startswith(piece, start) and len(encoder.encode(piece)) <= MAX_CHUNK_TOKENS:
            return start + len(piece)
    return start + 1


class _Remembering:
    """An encoder that remembers what it encoded lately.

    Every window of a thread begins with the root: a long one is cut into the same pieces again
    and again, and must not cost its whole length for every reply.
    """

    def __init__(self, encoder: Encoder) -> None:
        self.encode = lru_cache(_REMEMBERED_TEXTS)(encoder.encode)
        self.decode = encoder.decode


def _identified(kind: str, pieces: Iterable[_Piece], encoder: Encoder) -> Iterator[Chunk]:
    """Chunks of pieces. The n-th piece over the same messages is of the kind ``kind/n``, so that
    no two chunks have one id."""
    ordinals: Counter[tuple[str, ...]] = Counter()
    for piece in pieces:
        ordinals[piece.message_ids] += 1
        ordinal = ordinals[piece.message_ids]
        full_kind = kind if ordinal == 1 else f"{kind}/{ordinal}"
        yield Chunk(
            chunk_id=chunk_id(full_kind, piece.message_ids),
            kind=full_kind,
            message_ids=piece.message_ids,
            text=piece.text,
            token_count=len(encoder.encode(piece.text)),
        )
