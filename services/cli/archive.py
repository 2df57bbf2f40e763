"""Reads an archive as a stream of import requests: a Slack export, or JSON lines.

A Slack export is a zip or a folder. JSON lines are a file, or a folder or zip with
``messages.jsonl`` beside ``channels.json`` and ``people.json``. Directories come first; every file
is read as a stream, and one that can not be used becomes a ``SkippedFile``.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO

from recall.corpus.v1 import corpus_pb2
from recall.ingest.v1 import ingest_pb2
from services.cli.archive_entries import (
    READ_FAULTS,
    ArchiveError,
    Entry,
    open_entries,
    readable_name,
)
from services.cli.json_arrays import MAX_ELEMENT_BYTES, JsonFileError, read_array

__all__ = ["ArchiveError", "read_archive"]

Request = ingest_pb2.ImportMessagesRequest
# Records of an open file; None for one that can not be sent.
Read = Callable[[IO[bytes]], Iterator[bytes | None]]

REQUEST_RECORDS = 1_000
# A request is at most 4 MB, unless one record alone is larger.
REQUEST_BYTES = 3_500_000
# Ingest takes messages of 64 MB at most.
RECORD_BYTES = MAX_ELEMENT_BYTES

LINES = "messages.jsonl"
# In the order in which they are sent: a later entry of the same id replaces an earlier one.
_SLACK_DIRECTORIES = {
    "org_users.json": ingest_pb2.DIRECTORY_KIND_USERS,
    "users.json": ingest_pb2.DIRECTORY_KIND_USERS,
    "channels.json": ingest_pb2.DIRECTORY_KIND_CHANNELS,
    "groups.json": ingest_pb2.DIRECTORY_KIND_GROUPS,
    "dms.json": ingest_pb2.DIRECTORY_KIND_DMS,
    "mpims.json": ingest_pb2.DIRECTORY_KIND_MPIMS,
}
_LINES_DIRECTORIES = {
    "people.json": ingest_pb2.DIRECTORY_KIND_USERS,
    "channels.json": ingest_pb2.DIRECTORY_KIND_CHANNELS,
}
_DAY_FILE = re.compile(r"\d{4}-\d{2}-\d{2}\.json")
_DEPTH_OF_DAY_FILES = 2


def read_archive(path: Path, header: ingest_pb2.ImportHeader) -> Iterator[Request]:
    """The requests of an import, the header first, with its source set to what the archive is.

    Raises ArchiveError when the path is missing or no archive.
    """
    if not path.exists():
        raise ArchiveError(f"{readable_name(path)}: no such file or folder.")
    if _is_lines_file(path):
        if not (path.name == LINES and (path.parent / "channels.json").is_file()):
            yield _opened(header, corpus_pb2.SOURCE_SYNTHETIC)
            name = readable_name(Path(path.name))
            yield from _read_file(Entry(name, lambda: path.open("rb")), "", _lines)
            return
        # The channels.json beside it says which channels are private.
        path = path.parent
    with open_entries(_packed(path)) as entries:
        yield from _read_entries(path, header, entries)


def _packed(path: Path) -> Path:
    """The zip inside a folder that holds nothing else to import; else the path itself."""
    if not path.is_dir() or any((path / mark).exists() for mark in (LINES, *_SLACK_DIRECTORIES)):
        return path
    zips = sorted(found for found in path.glob("*.zip") if zipfile.is_zipfile(found))
    if len(zips) > 1:
        names = ", ".join(readable_name(Path(found.name)) for found in zips)
        raise ArchiveError(
            f"{readable_name(path)} holds several archives ({names}): import one of them."
        )
    has_days = any(_DAY_FILE.fullmatch(found.name) for found in path.glob("*/*.json"))
    return zips[0] if zips and not has_days else path


def _is_lines_file(path: Path) -> bool:
    if path.is_dir() or zipfile.is_zipfile(path):
        return False
    if path.suffix.lower() in (".jsonl", ".ndjson"):
        return True
    raise ArchiveError(
        f"{readable_name(path)} is no archive: give a Slack export (zip or folder) or a .jsonl "
        "file."
    )


def _opened(header: ingest_pb2.ImportHeader, source: corpus_pb2.Source.ValueType) -> Request:
    opened = ingest_pb2.ImportHeader()
    opened.CopyFrom(header)
    opened.source = source
    return Request(header=opened)


def _read_entries(
    path: Path, header: ingest_pb2.ImportHeader, entries: Sequence[Entry]
) -> Iterator[Request]:
    root = _root(path, [entry.name for entry in entries])
    # A list: a zip may hold two files of one name, and neither may be lost.
    inside = [(e.name.removeprefix(root), e) for e in entries if e.name.startswith(root)]
    is_lines = any(name == LINES for name, _ in inside)
    source = corpus_pb2.SOURCE_SYNTHETIC if is_lines else corpus_pb2.SOURCE_SLACK
    directories = _LINES_DIRECTORIES if is_lines else _SLACK_DIRECTORIES
    yield _opened(header, source)
    for wanted, kind in directories.items():
        for name, entry in inside:
            if name == wanted:
                yield from _read_directory(entry, kind)
    for entry in entries:
        if not entry.name.startswith(root):
            yield _skipped(entry.name, "it lies outside the export's folder.")
    for name, entry in inside:
        if name not in directories:
            yield from _read_entry(name, entry, is_lines)


def _read_entry(name: str, entry: Entry, is_lines: bool) -> Iterator[Request]:
    if name == LINES:
        return _read_file(entry, "", _lines)
    parts = name.split("/")
    if is_lines or len(parts) != _DEPTH_OF_DAY_FILES or not name.lower().endswith(".json"):
        return iter([_skipped(entry.name, "it holds no messages.")])
    return _read_file(entry, parts[0], read_array)


def _root(path: Path, names: Iterable[str]) -> str:
    """The folder that the export lies in, with a trailing slash; empty for the top."""
    marks = {LINES, *_SLACK_DIRECTORIES}
    roots = {name[: -len(base)] for name in names if (base := name.rsplit("/", 1)[-1]) in marks}
    if not roots:
        roots = {
            name[: name.rfind("/", 0, name.rfind("/")) + 1]
            for name in names
            if "/" in name and _DAY_FILE.fullmatch(name.rsplit("/", 1)[-1])
        }
    if not roots:
        raise ArchiveError(
            f"{readable_name(path)} holds neither a Slack export (users.json, channels.json, "
            f"folders of day files) nor {LINES}."
        )
    return min(roots, key=lambda root: (root.count("/"), root))


def _read_directory(entry: Entry, kind: ingest_pb2.DirectoryKind.ValueType) -> Iterator[Request]:
    for group in _groups(entry, read_array):
        if isinstance(group, Request):
            yield group
        else:
            yield Request(directory=ingest_pb2.DirectoryRecords(kind=kind, records_json=group))


def _read_file(entry: Entry, folder: str, read: Read) -> Iterator[Request]:
    for group in _groups(entry, read):
        if isinstance(group, Request):
            yield group
        else:
            messages = ingest_pb2.MessageRecords(
                channel_name=folder, file_name=entry.name, records_json=group
            )
            yield Request(messages=messages)


def _groups(entry: Entry, read: Read) -> Iterator[list[bytes] | Request]:
    """A file's records, as many as one request takes; what can not be read as a request."""
    group: list[bytes] = []
    size, count, fault = 0, 0, ""
    try:
        with entry.open() as stream:
            for count, record in enumerate(read(stream), 1):
                if record is None or len(record) > RECORD_BYTES:
                    yield _skipped(entry.name, f"record {count} is over {RECORD_BYTES} bytes.")
                    continue
                if group and (len(group) == REQUEST_RECORDS or size + len(record) > REQUEST_BYTES):
                    yield group
                    group, size = [], 0
                group.append(record)
                size += len(record)
    except JsonFileError as error:
        fault = str(error)
    except READ_FAULTS as error:
        fault = f"it can not be read ({error or type(error).__name__})"
    if group:
        yield group
    if fault:
        rest = f"; the {count} records before that were read." if count else "."
        yield _skipped(entry.name, fault + rest)


def _lines(stream: IO[bytes]) -> Iterator[bytes | None]:
    """Lines that are not blank; None for one that is too long."""
    while line := stream.readline(RECORD_BYTES + 1):
        if len(line) > RECORD_BYTES:
            while line and not line.endswith(b"\n"):
                line = stream.readline(RECORD_BYTES)
            yield None
        elif line.strip():
            yield line.strip()


def _skipped(name: str, reason: str) -> Request:
    return Request(skipped_file=ingest_pb2.SkippedFile(file_name=name, reason=reason))
