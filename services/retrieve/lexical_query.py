"""The lexical arm's query: the question's terms, joined with OR for ``to_tsquery('simple', …)``.

A term is a run of letters and digits, lowercased, that is no English stop word. Letters and
digits are what PostgreSQL's parser keeps in one word: with combining marks and invisible
characters after them, without fractions and superscripts. Nothing else of the question gets into
the query, so no question can break it.

PostgreSQL indexes some runs as one word although punctuation stands inside: ``config.yaml``,
``3.2``, ``src/main.py``, ``bob@ex.test``; and it takes the hyphen of ``INC-4821`` for a minus.
Their pieces match nothing, so such an identifier is asked for whole as well: between quotes
``to_tsquery`` reads it as the index did.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

# A longer query adds noise and time: ts_rank visits every term in every matching chunk.
MAX_TERMS = 64
# to_tsquery refuses a longer word, and the index holds none.
MAX_TERM_BYTES = 2_046
MAX_IDENTIFIER_BYTES = 255

# PostgreSQL's english.stop.
_STOP_WORDS = """
    i me my myself we our ours ourselves you your yours yourself yourselves he him his himself
    she her hers herself it its itself they them their theirs themselves what which who whom this
    that these those am is are was were be been being have has had having do does did doing a an
    the and but if or because as until while of at by for with about against between into through
    during before after above below to from up down in out on off over under again further then
    once here there when where why how all any both each few more most other some such no nor not
    only own same so than too very s t can will just don should now
"""
STOP_WORDS = frozenset(_STOP_WORDS.split())

# A question is matched by its shape: a string of the same length with "x" for every letter or
# digit outside ASCII, "\0" for every mark that continues a word, and a space for the rest.
_WORD = r"[a-z0-9][a-z0-9\0]*"
_TERM = re.compile(_WORD)
_RUN = re.compile(rf"(?:/|-(?=[0-9]))?{_WORD}(?:[-./@_:+=?&%]{{1,3}}{_WORD})*")
# Punctuation that the index keeps inside a word, or reads as a sign.
_GLUE = re.compile(r"[./@]|-[0-9]")
_MARKS = frozenset(("Mn", "Mc", "Me", "Cf"))
_DIGITS = frozenset(("Nd", "Nl"))


@dataclass(frozen=True)
class _Run:
    """What stands between white space or other punctuation."""

    terms: tuple[str, ...]
    # The whole run as an operand when the index does not hold it as its terms; else empty.
    identifier: str

    def operands(self) -> Iterator[str]:
        yield from self.terms
        if self.identifier:
            yield self.identifier

    def words(self) -> Iterator[str]:
        if not self.identifier:
            yield from self.terms
        else:
            together = " & ".join(self.terms)
            yield f"{self.identifier} | {together}" if together else self.identifier


def lexical_query(question: str) -> str:
    """The query for ``to_tsquery('simple', …)``; empty when only stop words remain.

    At most ``MAX_TERMS`` operands, the first of the question.
    """
    return " | ".join(_first(operand for run in _runs(question) for operand in run.operands()))


def distinct_words(question: str) -> list[str]:
    """One query a word of the question, at most ``MAX_TERMS``, to see which words a text holds.

    An identifier is one word: a text holds it whole or by all its terms.
    """
    return _first(word for run in _runs(question) for word in run.words())


def plain_terms(question: str) -> list[str]:
    """The question's terms, at most ``MAX_TERMS``, without the wholes of its identifiers."""
    return _first(term for run in _runs(question) for term in run.terms)


def _first(operands: Iterable[str]) -> list[str]:
    return list(islice(dict.fromkeys(operands), MAX_TERMS))


def _runs(question: str) -> Iterator[_Run]:
    lowered = "".join(map(_lower, question))
    shape = "".join(map(_stand_in, lowered))
    for match in _RUN.finditer(shape):
        start, end = match.span()
        found = (lowered[term.start() : term.end()] for term in _TERM.finditer(shape, start, end))
        yield _Run(tuple(filter(_is_term, found)), _identifier(lowered[start:end]))


def _identifier(run: str) -> str:
    fits = len(run.encode()) <= MAX_IDENTIFIER_BYTES
    return f"'{run}'" if fits and _GLUE.search(run) else ""


def _is_term(word: str) -> bool:
    return word not in STOP_WORDS and len(word.encode()) <= MAX_TERM_BYTES


def _lower(character: str) -> str:
    """Lowercase by single characters, as PostgreSQL does: no final sigma, no dotted i of two."""
    lowered = character.lower()
    return lowered if len(lowered) == 1 else character


def _stand_in(character: str) -> str:
    if character.isascii():
        return character if character != "\0" else " "
    category = unicodedata.category(character)
    if category in _MARKS:
        return "\0"
    # Circled and squared letters have a case, though Python does not count them as letters.
    is_letter = character.isalpha() or character.isupper() or character.islower()
    return "x" if is_letter or category in _DIGITS else " "
