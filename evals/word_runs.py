"""Runs of words: how a text is recognised inside another."""

from __future__ import annotations

import re

RUN_WORDS = 8
# A shorter message is recognised whole, but not below this: such texts are nobody's own.
SHORTEST_RUN_WORDS = 4
_WORD = re.compile(r"\w+")

Run = tuple[str, ...]


def words_of(text: str) -> list[str]:
    """The words of a text, caseless, without punctuation."""
    return _WORD.findall(text.casefold())


def runs_of(text: str, length: int = RUN_WORDS) -> frozenset[Run]:
    """Every run of ``length`` words."""
    words = words_of(text)
    return frozenset(tuple(words[i : i + length]) for i in range(len(words) - length + 1))


def own_runs_of(text: str) -> frozenset[Run]:
    """What a text is recognised by: runs of eight words; all of it when it has four to seven."""
    words = words_of(text)
    if len(words) >= RUN_WORDS:
        return runs_of(text)
    return frozenset([tuple(words)] if len(words) >= SHORTEST_RUN_WORDS else [])
