"""Pieces of a document: paragraphs packed to 800 characters. Pure."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator

DOCUMENT_CHUNKER_VERSION = "document/1"
MAX_CHARACTERS = 800
OVERLAP_CHARACTERS = 80
_PARAGRAPHS = re.compile(r"\n\s*\n")


def pieces(text: str) -> list[str]:
    """The text in pieces of at most 800 characters, at paragraphs where they fit; what is longer is
    cut at white space, each cut repeating the last 80 characters or so."""
    packed: list[str] = []
    current = ""
    for part in _parts(text):
        joined = f"{current}\n\n{part}" if current else part
        if len(joined) <= MAX_CHARACTERS:
            current = joined
        else:
            packed.append(current)
            current = part
    return [*packed, current] if current else packed


def render(path: str, text: str) -> str:
    """What is indexed of a piece: its path before its text, so that a name finds it."""
    return f"[{path}] {text}"


def chunk_id(message_id: str) -> str:
    """SHA-256 (hex) over chunker version, kind and message id."""
    return hashlib.sha256(f"{DOCUMENT_CHUNKER_VERSION}\nmessage\n{message_id}".encode()).hexdigest()


def _parts(text: str) -> Iterator[str]:
    for paragraph in _PARAGRAPHS.split(text):
        yield from _cut(paragraph.strip())


def _cut(paragraph: str) -> Iterator[str]:
    start = 0
    while len(paragraph) - start > MAX_CHARACTERS:
        end = paragraph.rfind(" ", start + MAX_CHARACTERS // 2, start + MAX_CHARACTERS)
        end = end if end > 0 else start + MAX_CHARACTERS
        yield paragraph[start:end].strip()
        start = max(end - OVERLAP_CHARACTERS, start + 1)
        space = paragraph.find(" ", start, end)
        start = space + 1 if space > 0 else end
    if paragraph[start:].strip():
        yield paragraph[start:].strip()
