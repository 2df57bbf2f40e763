"""Elements of a JSON array in a file of any size, one at a time, in the memory of one element.

Elements come as the bytes that stand in the file: no number passes through a float, and what is
wrong inside one element is found by whoever decodes it and costs no other element.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import IO

MAX_ELEMENT_BYTES = 48_000_000

_BLOCK_BYTES = 64 * 1024
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_SPACE = b" \t\r\n"
# Everything up to the next bracket outside a string. Possessive: never backtracks.
_TO_BRACKET = re.compile(rb'(?:[^"\[\]{}]++|"(?:[^"\\]++|\\.)*+")*+([\[\]{}])', re.DOTALL)
_OPENING = {ord("]"): ord("["), ord("}"): ord("{")}


class JsonFileError(Exception):
    """A file is not the JSON it should be. ``str`` says what is wrong, for a person."""


def read_array(stream: IO[bytes]) -> Iterator[bytes]:
    """The elements of the array that a stream holds.

    What stands between two objects or arrays (numbers, texts, rubbish) comes as one element.
    Raises JsonFileError where the brackets stop making sense; the elements before were yielded.
    """
    window = _Window(stream)
    window.expect_array()
    open_brackets = bytearray(b"[")
    while open_brackets:
        bracket = window.next_bracket()
        if bracket not in _OPENING:
            if len(open_brackets) == 1:
                yield from window.take_loose()
            open_brackets.append(bracket)
        elif open_brackets.pop() != _OPENING[bracket]:
            raise JsonFileError("its JSON is broken: brackets do not match")
        elif len(open_brackets) == 1:
            yield window.take_element()
    yield from window.take_loose()
    window.expect_end()


class _Window:
    """The part of a stream from the end of the last element taken on."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._bytes = b""
        self._start = 0
        # Just behind the last bracket.
        self._position = 0

    def expect_array(self) -> None:
        """Move behind the first bracket. Raises JsonFileError when it opens no array."""
        block = self._stream.read(_BLOCK_BYTES).removeprefix(_BYTE_ORDER_MARK)
        # White space goes block by block: a file of nothing else never gathers in memory.
        while block and not (stripped := block.lstrip(_SPACE)):
            block = self._stream.read(_BLOCK_BYTES)
        if not block:
            raise JsonFileError("it is empty")
        self._bytes = stripped
        if self._bytes[:1] != b"[":
            raise JsonFileError("it holds no JSON array")
        self._bytes = self._bytes[1:]

    def next_bracket(self) -> int:
        """Move behind the next bracket and tell which it is."""
        while (found := _TO_BRACKET.match(self._bytes, self._position)) is None:
            self._read_more()
        self._position = found.end()
        return self._bytes[self._position - 1]

    def take_element(self) -> bytes:
        """What ends with the last bracket."""
        return self._take(self._position)

    def take_loose(self) -> Iterator[bytes]:
        """What stands before the last bracket and is more than commas."""
        loose = self._take(self._position - 1).strip(_SPACE + b",")
        if loose:
            yield loose

    def expect_end(self) -> None:
        """Raise JsonFileError when something follows the last bracket."""
        rest = self._bytes[self._position :] or self._stream.read(_BLOCK_BYTES)
        if rest.strip(_SPACE):
            raise JsonFileError("something follows the end of its array")

    def _take(self, end: int) -> bytes:
        taken = self._bytes[self._start : end].lstrip(_SPACE + b",")
        self._start = end
        return taken

    def _read_more(self) -> None:
        """Drop what was taken and read as much as is left, so that scanning again stays linear."""
        kept = self._bytes[self._start :]
        if len(kept) > MAX_ELEMENT_BYTES:
            raise JsonFileError(f"it holds an element of over {MAX_ELEMENT_BYTES} bytes")
        block = self._stream.read(max(_BLOCK_BYTES, len(kept)))
        if not block:
            raise JsonFileError("its JSON is broken: it ends too early")
        self._bytes = kept + block
        self._position -= self._start
        self._start = 0
