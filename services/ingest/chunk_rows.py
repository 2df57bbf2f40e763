"""The rows of chunks, and which of them differ from what is stored."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from services.corpus import Message, Source
from services.ingest.chunkers import Chunker
from services.ingest.chunking import Chunk, Encoder, chunk_thread


@dataclass(frozen=True)
class ChunkRow:
    """A chunk with what the filters of both arms need. Equal rows need no writing."""

    chunk: Chunk
    thread_root_id: str
    text_sha256: str
    channel_id: str
    author_ids: tuple[str, ...]
    posted_from: datetime
    posted_until: datetime

    @property
    def state(self) -> ChunkState:
        """What of the row is compared with what is stored."""
        return ChunkState(
            self.thread_root_id,
            self.text_sha256,
            self.channel_id,
            self.author_ids,
            self.posted_from,
            self.posted_until,
        )


@dataclass(frozen=True)
class ChunkState:
    """A stored chunk's deciding columns; the last four are None when its terms are missing."""

    thread_root_id: str
    text_sha256: str
    channel_id: str | None
    author_ids: tuple[str, ...] | None
    posted_from: datetime | None
    posted_until: datetime | None


@dataclass(frozen=True)
class Difference:
    """Chunk ids to delete and rows to insert."""

    gone: list[str]
    new: list[ChunkRow]


def thread_rows(
    threads: Mapping[str, Sequence[Message]],
    source: Source,
    encoder: Encoder,
    chunker: Chunker = chunk_thread,
) -> list[ChunkRow]:
    """The rows of every chunk of threads, given by root id."""
    return [
        _row(chunk, root_id, {message.message_id: message for message in messages})
        for root_id, messages in threads.items()
        for chunk in chunker(messages, source, encoder)
    ]


def difference(wanted: Iterable[ChunkRow], stored: Mapping[str, ChunkState]) -> Difference:
    """What turns the stored chunks, by id, into the wanted ones; equal ones stay untouched."""
    by_id = {row.chunk.chunk_id: row for row in wanted}
    kept = {id_ for id_, state in stored.items() if id_ in by_id and by_id[id_].state == state}
    return Difference(
        gone=[id_ for id_ in stored if id_ not in kept],
        new=[row for id_, row in by_id.items() if id_ not in kept],
    )


def text_sha256(text: str) -> str:
    """SHA-256 (hex) of a chunk's text: the key of its vector in the cache."""
    return hashlib.sha256(text.encode()).hexdigest()


def _row(chunk: Chunk, root_id: str, messages: Mapping[str, Message]) -> ChunkRow:
    shown = [messages[message_id] for message_id in chunk.message_ids]
    return ChunkRow(
        chunk=chunk,
        thread_root_id=root_id,
        text_sha256=text_sha256(chunk.text),
        channel_id=shown[0].channel_id,
        author_ids=tuple(sorted({message.author_id for message in shown if message.author_id})),
        posted_from=min(message.posted_at for message in shown),
        posted_until=max(message.posted_at for message in shown),
    )
