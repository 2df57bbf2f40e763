"""The parts of an import as they arrive: header, directory entries, messages, files left out."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from services.corpus import Source
from services.ingest.listing import DirectoryFile
from services.runtime.errors import invalid

BATCH_RECORDS = 500
BATCH_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True)
class Header:
    """What an import is into. ``skip_bots`` None keeps the workspace's setting."""

    source: Source
    workspace_id: str = ""
    default_workspace_id: str = ""
    team_id: str = ""
    embedder: str = ""
    skip_bots: bool | None = None


@dataclass(frozen=True)
class Entries:
    """Raw entries of one directory file."""

    file: DirectoryFile
    records: Sequence[bytes]


@dataclass(frozen=True)
class Records:
    """Raw messages of one file of a channel's folder."""

    folder: str
    file_name: str
    records: Sequence[bytes]


@dataclass(frozen=True)
class LeftOut:
    """A file that the reader of the archive could not use."""

    file_name: str
    reason: str


Part = Header | Entries | Records | LeftOut


@dataclass(frozen=True)
class RawRecord:
    """One raw message and where it stood."""

    folder: str
    file_name: str
    raw: bytes


async def read_header(parts: AsyncIterator[Part]) -> Header:
    """The first part. Raises CallError INVALID_ARGUMENT when it is no header."""
    first = await anext(parts, None)
    if not isinstance(first, Header):
        raise invalid("header", "must be the first part of an import")
    return first


async def batches(parts: AsyncIterator[Part]) -> AsyncIterator[list[RawRecord | LeftOut]]:
    """The records of the parts that follow the directories, 500 or 4 MB at a time."""
    batch: list[RawRecord | LeftOut] = []
    size = 0
    async for part in parts:
        for item in _items(part):
            batch.append(item)
            size += len(item.raw) if isinstance(item, RawRecord) else 0
            if len(batch) >= BATCH_RECORDS or size >= BATCH_BYTES:
                yield batch
                batch, size = [], 0
    if batch:
        yield batch


def _items(part: Part) -> Sequence[RawRecord | LeftOut]:
    match part:
        case Records(folder, file_name, records):
            return [RawRecord(folder, file_name, raw) for raw in records]
        case LeftOut():
            return [part]
        case Entries():
            raise invalid("directory", "must come before the messages")
        case Header():
            raise invalid("header", "must come once, as the first part")
