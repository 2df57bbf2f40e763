"""The signals of a question and its hits, from what was read about them. Pure.

Weights of words are their rarity over what the asker may read: ``coverage.rarity``.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from services.calibration import signals as names
from services.retrieve.coverage import rarity

EVIDENCE_LIMIT = 12
AGREEMENT_DEPTH = 10
SHARE_DEPTH = 5


@dataclass(frozen=True)
class Reading:
    """What was read for a question.

    ``chunks_with`` counts readable chunks with each word (by stem) out of ``chunk_count``.
    ``words_of`` and ``identifiers_of`` are what each hit holds itself, hits in rank order.
    ``named_author`` is the one person named, or empty;
    the two coverages are shares of the other words in one message by that person, and by anybody
    else. ``firsts`` are the first messages of both arms.
    """

    hits: Sequence[str]
    # Fetched because they replace a hit: they have signals, and the question's ignore them.
    extras: Sequence[str]
    cosines: Mapping[str, float]
    chunks_with: Mapping[str, int]
    chunk_count: int
    words_of: Mapping[str, Collection[str]]
    identifiers: Collection[str]
    identifiers_of: Mapping[str, Collection[str]]
    in_lexical: Collection[str]
    firsts: tuple[Sequence[str], Sequence[str]]
    authors: Mapping[str, str]
    named_author: str = ""
    named_coverage: float = 0.0
    other_coverage: float = 0.0


@dataclass(frozen=True)
class Measured:
    """Raw signals of the question, and of each hit in rank order, then each extra."""

    question: dict[str, float]
    hits: tuple[dict[str, float], ...]


def measure(reading: Reading) -> Measured:
    """Every signal that could be measured."""
    weights = word_weights(reading.chunks_with, reading.chunk_count)
    hits = tuple(_of_hit(reading, weights, hit) for hit in reading.hits)
    extras = tuple(_of_hit(reading, weights, hit) for hit in reading.extras)
    return Measured(_of_question(reading, weights, hits), hits + extras)


def word_weights(chunks_with: Mapping[str, int], chunk_count: int) -> dict[str, float]:
    """Share (0 to 1) of the question's rarity that each word has."""
    raw = {word: rarity(count, chunk_count) for word, count in chunks_with.items()}
    total = math.fsum(raw.values())
    return {word: weight / total for word, weight in raw.items()} if total else {}


def _of_hit(reading: Reading, weights: Mapping[str, float], hit: str) -> dict[str, float]:
    found = {names.COVERAGE: _covered(weights, reading.words_of.get(hit, ()))} if weights else {}
    if hit in reading.cosines:
        found[names.COSINE] = reading.cosines[hit]
    if reading.identifiers:
        # The dense arm finds what resembles an identifier; only the lexical one finds it.
        held = reading.identifiers_of.get(hit, ()) if hit in reading.in_lexical else ()
        found[names.IDENTIFIERS] = len(held) / len(reading.identifiers)
    found[names.BY_NAMED_AUTHOR] = float(_is_by_named(reading, hit))
    return found


def _of_question(
    reading: Reading, weights: Mapping[str, float], hits: Sequence[Mapping[str, float]]
) -> dict[str, float]:
    found: dict[str, float] = {}
    cosines = sorted((hit[names.COSINE] for hit in hits if names.COSINE in hit), reverse=True)
    if cosines:
        found[names.BEST_COSINE] = cosines[0]
    if len(cosines) > 1:
        found[names.COSINE_MARGIN] = cosines[0] - cosines[1]
    if weights and hits:
        found[names.BEST_COVERAGE] = max(hit[names.COVERAGE] for hit in hits)
        together = {word for hit in reading.hits for word in reading.words_of.get(hit, ())}
        found[names.JOINT_COVERAGE] = _covered(weights, together)
    if weights:
        unseen = [word for word, count in reading.chunks_with.items() if count == 0]
        found[names.UNSEEN_RARITY] = _covered(weights, unseen)
    found[names.ARM_AGREEMENT] = _agreement(*reading.firsts)
    found[names.IDENTIFIER_ASKED] = float(bool(reading.identifiers))
    found[names.IDENTIFIER_FOUND] = max(
        (hit.get(names.IDENTIFIERS, 0.0) for hit in hits), default=0.0
    )
    return found | _of_author(reading)


def _of_author(reading: Reading) -> dict[str, float]:
    if not reading.named_author:
        return dict.fromkeys(
            (names.AUTHOR_NAMED, names.AUTHOR_COVERAGE, names.AUTHOR_MARGIN, names.AUTHOR_SHARE),
            0.0,
        )
    ranks = [1 / rank for rank in range(1, min(SHARE_DEPTH, len(reading.hits)) + 1)]
    by_named = [
        weight
        for weight, hit in zip(ranks, reading.hits, strict=False)
        if _is_by_named(reading, hit)
    ]
    return {
        names.AUTHOR_NAMED: 1.0,
        names.AUTHOR_COVERAGE: reading.named_coverage,
        names.AUTHOR_MARGIN: reading.named_coverage - reading.other_coverage,
        names.AUTHOR_SHARE: math.fsum(by_named) / math.fsum(ranks) if ranks else 0.0,
    }


def _is_by_named(reading: Reading, hit: str) -> bool:
    return bool(reading.named_author) and reading.authors.get(hit) == reading.named_author


def _covered(weights: Mapping[str, float], words: Collection[str]) -> float:
    return min(1.0, math.fsum(weight for word, weight in weights.items() if word in words))


def _agreement(dense: Sequence[str], lexical: Sequence[str]) -> float:
    first, second = set(dense[:AGREEMENT_DEPTH]), set(lexical[:AGREEMENT_DEPTH])
    longest = max(len(first), len(second))
    return len(first & second) / longest if longest else 0.0
