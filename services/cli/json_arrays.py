"""Records of a JSON file of any size, one at a time, in the memory of one record."""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterator
from typing import IO

import ijson

_BLOCK_BYTES = 64 * 1024


class JsonFileError(Exception):
    """A file is not the JSON it should be. ``str`` says what is wrong, for a person."""


def read_array(stream: IO[bytes]) -> Iterator[bytes | None]:
    """Elements of a JSON array, or of the array under ``messages``, each as JSON.

    Fractional numbers become their text, so that no ts passes through a float. None stands for an
    element that nests too deep to be one. Raises JsonFileError where the JSON breaks off; the
    elements before were yielded.
    """
    text = _Utf8(stream)
    try:
        prefix = _prefix(text.first_character())
        for element in ijson.items(text, prefix, use_float=False, buf_size=_BLOCK_BYTES):
            yield _encoded(element)
    except ijson.JSONError as error:
        raise JsonFileError(f"its JSON is broken ({_one_line(error)})") from None
    except ValueError:
        raise JsonFileError("it holds a number that nobody can read") from None


def _prefix(first: str) -> str:
    match first:
        case "[":
            return "item"
        case "{":
            return "messages.item"
        case "":
            raise JsonFileError("it is empty")
        case _:
            raise JsonFileError("it is not JSON")


def _encoded(element: object) -> bytes | None:
    try:
        return json.dumps(element, default=str, separators=(",", ":")).encode()
    except RecursionError:
        return None


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:120]


class _Utf8:
    """A stream whose bytes are always UTF-8: one bad byte costs a character, not a file."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")(errors="replace")
        self._ahead = b""

    def first_character(self) -> str:
        """The first character that is no white space; empty at the end."""
        while not self._ahead.strip():
            block = self._block()
            if not block:
                return ""
            self._ahead += block
        return chr(self._ahead.lstrip()[0])

    def read(self, size: int = -1) -> bytes:
        """Some bytes; empty at the end. ``size`` zero reads nothing."""
        if size == 0:
            return b""
        ahead, self._ahead = self._ahead, b""
        return ahead or self._block()

    def _block(self) -> bytes:
        while block := self._stream.read(_BLOCK_BYTES):
            if text := self._decoder.decode(block):
                return text.encode()
        return self._decoder.decode(b"", final=True).encode()
