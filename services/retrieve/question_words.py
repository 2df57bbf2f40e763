"""What a question asks with: its words, the identifiers among them, the names it may hold. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

from services.retrieve.lexical_query import STOP_WORDS, distinct_words, plain_terms

# A shorter stem would match half the language as a prefix.
MIN_PREFIX_CHARACTERS = 3

_IDENTIFIER = re.compile(r"(?=.*\d)(?=.*[^\W\d_])")
_NAME = re.compile(r"(?<![\w@])(@?)([^\W\d_][\w.-]*)")
_POSSESSIVE = re.compile(r"['\u2019]s\b")


@dataclass(frozen=True)
class QuestionWords:
    """``words`` are terms without stop words; ``identifiers`` are queries of exact identifiers;
    ``names`` are words that may name a person, as written."""

    words: tuple[str, ...]
    identifiers: tuple[str, ...]
    names: tuple[str, ...]


def question_words(question: str) -> QuestionWords:
    """The words of a question."""
    return QuestionWords(
        words=tuple(plain_terms(question)),
        identifiers=tuple(filter(_is_identifier, distinct_words(question))),
        names=tuple(dict.fromkeys(_names(_POSSESSIVE.sub("", question)))),
    )


def stem_query(word: str, stem: str) -> str:
    """A query for a word in every form of its stem; for the word itself when the stem is short."""
    if len(stem) < MIN_PREFIX_CHARACTERS or not word.startswith(stem) or not stem.isalnum():
        return f"'{word}'"
    return f"'{stem}':*"


def _is_identifier(query: str) -> bool:
    """Letters and digits in one word, as in 28P01 or INC-4821: nothing that a number or a name is
    by chance."""
    return _IDENTIFIER.match(query.split(" | ")[0]) is not None


def _names(question: str) -> list[str]:
    """Capitalised words that are no stop word, and whatever follows an @."""
    found = []
    for at, word in _NAME.findall(question):
        if at or (word[0].isupper() and word.lower() not in STOP_WORDS):
            found.append(word.rstrip(".-"))
    return found
