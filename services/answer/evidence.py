"""One message that a writer may use, with the scores it was ranked by."""

from __future__ import annotations

from dataclasses import dataclass

from services.corpus import Message


@dataclass(frozen=True)
class Evidence:
    """Scores as in ``recall.answer.v1.Evidence``; None where no score exists."""

    message: Message
    fused_score: float = 0.0
    rerank_score: float | None = None
    cosine: float | None = None
    dense_rank: int | None = None
    lexical_rank: int | None = None
    term_coverage: float | None = None
