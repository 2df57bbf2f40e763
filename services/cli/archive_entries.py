"""The files of an archive, zip or folder, by name; opened one at a time, never unpacked."""

from __future__ import annotations

import lzma
import os
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

# What reading a damaged, encrypted or unreadable file raises.
READ_FAULTS = (
    OSError,
    EOFError,
    zlib.error,
    lzma.LZMAError,
    zipfile.BadZipFile,
    NotImplementedError,
    # A name that claims to be UTF-8 and is not.
    UnicodeDecodeError,
)
_ENCRYPTED_FLAG = 0x1
_UTF8_FLAG = 0x800


class ArchiveError(Exception):
    """The archive can not be read; the message names it and says what to do."""


@dataclass(frozen=True)
class Entry:
    """One file. ``name`` is its path inside the archive, with ``/``."""

    name: str
    open: Callable[[], IO[bytes]]


@contextmanager
def open_entries(path: Path) -> Iterator[list[Entry]]:
    """The files of a zip or folder, by name. Raises ArchiveError."""
    if path.is_dir():
        yield _folder_entries(path)
        return
    with _opened_zip(path) as archive:
        yield _zip_entries(archive)


def _opened_zip(path: Path) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(path)
    except READ_FAULTS as error:
        raise ArchiveError(
            f"{readable_name(path)} is a damaged zip file ({error}): fetch it again."
        ) from None


def readable_name(path: Path) -> str:
    """The path as text that can be sent and printed; bytes that are no UTF-8 stand escaped."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def decoded_name(info: zipfile.ZipInfo) -> str:
    """The entry's name, as UTF-8 where it is UTF-8 though the flag that says so is missing.

    Python reads unflagged names as code page 437, which loses nothing, so the bytes come back.
    """
    name = info.filename
    if not info.flag_bits & _UTF8_FLAG:
        try:
            name = name.encode("cp437").decode("utf-8")
        except UnicodeError:
            name = info.filename
    return name if "/" in name else name.replace("\\", "/")


def _zip_entries(archive: zipfile.ZipFile) -> list[Entry]:
    return _usable(
        Entry(decoded_name(info), _opener(archive, info))
        for info in archive.infolist()
        if not info.is_dir()
    )


def _opener(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Callable[[], IO[bytes]]:
    def opened() -> IO[bytes]:
        if info.flag_bits & _ENCRYPTED_FLAG:
            raise OSError("it is encrypted")
        return archive.open(info)

    return opened


def _folder_entries(folder: Path) -> list[Entry]:
    return _usable(
        Entry(readable_name(path.relative_to(folder)), _path_opener(path))
        for path in folder.rglob("*")
        if path.is_file()
    )


def _path_opener(path: Path) -> Callable[[], IO[bytes]]:
    return lambda: path.open("rb")


def _usable(entries: Iterator[Entry]) -> list[Entry]:
    """Sorted, without what file managers leave behind."""
    return sorted((entry for entry in entries if not _is_litter(entry.name)), key=_name)


def _name(entry: Entry) -> str:
    return entry.name


def _is_litter(name: str) -> bool:
    return any(part.startswith(".") or part == "__MACOSX" for part in name.split("/"))
