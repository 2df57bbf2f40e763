"""How much of a question's rare wording stands in a message."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping


def term_coverage(
    words: Collection[str], chunks_with: Mapping[str, int], chunk_count: int
) -> float | None:
    """Share (0 to 1) of the question's rarity-weighted words that are among ``words``.

    ``chunks_with`` counts, for each word of the question, the readable chunks that hold it, out
    of ``chunk_count``. The weight is BM25's ln(1 + (N - n + 0.5) / (n + 0.5)), always positive.
    None when the question has no word.
    """
    if not chunks_with:
        return None
    weights = {word: rarity(count, chunk_count) for word, count in chunks_with.items()}
    # One order for both sums: a message that holds every word gets exactly 1.
    present = math.fsum(weight for word, weight in weights.items() if word in words)
    return present / math.fsum(weights.values())


def rarity(count: int, chunk_count: int) -> float:
    """BM25's ln(1 + (N - n + 0.5) / (n + 0.5)): how much a word says that n of N chunks hold."""
    return math.log(1 + (chunk_count - count + 0.5) / (count + 0.5))
