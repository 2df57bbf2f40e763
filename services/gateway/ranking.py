"""The evidence and its order. Pure.

Its nouns are the protos': a hit travels from retrieve to answer as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from recall.answer.v1 import answer_pb2
from recall.corpus.v1 import corpus_pb2
from recall.rerank.v1 import rerank_pb2

RERANK_UNAVAILABLE = "rerank_unavailable"

_QUALIFIED = (corpus_pb2.VERDICT_OK, corpus_pb2.VERDICT_UNVERIFIED)


@dataclass(frozen=True)
class Ranked:
    """Hits in the order to use. ``scores`` (0 to 3) holds those a tier gave, by message id."""

    hits: tuple[corpus_pb2.Hit, ...]
    tier: rerank_pb2.Tier.ValueType = rerank_pb2.TIER_RRF
    scores: dict[str, float] = field(default_factory=dict)
    degraded: tuple[str, ...] = ()
    response: rerank_pb2.RerankResponse | None = None

    def evidence(self) -> list[answer_pb2.Evidence]:
        """What the writer is given, best first."""
        return [_evidence(hit, self.scores.get(hit.message.message_id)) for hit in self.hits]

    def messages(self) -> list[corpus_pb2.Message]:
        """The messages alone, best first."""
        return [hit.message for hit in self.hits]


def reranked(hits: Sequence[corpus_pb2.Hit], response: rerank_pb2.RerankResponse) -> Ranked:
    """The hits in the reranker's order.

    A reranker only reorders: ids it invents or repeats are ignored, hits it loses are appended in
    their fused order. It never crosses groups of verdicts.
    """
    by_id = {hit.message.message_id: hit for hit in hits}
    order = dict.fromkeys(row.message_id for row in response.ranking if row.message_id in by_id)
    order.update(dict.fromkeys(by_id))
    return Ranked(
        hits=in_verdict_groups([by_id[message_id] for message_id in order]),
        tier=response.tier or rerank_pb2.TIER_RRF,
        scores={
            row.message_id: row.score
            for row in response.ranking
            if row.message_id in by_id and row.HasField("score")
        },
        degraded=tuple(failed_tiers(response.failed_tiers)),
        response=response,
    )


def qualified(hits: Iterable[corpus_pb2.Hit]) -> list[corpus_pb2.Hit]:
    """The hits that may be evidence: those that the trust gate let through, or did not judge."""
    return [hit for hit in hits if hit.verdict in _QUALIFIED]


def in_verdict_groups(hits: Sequence[corpus_pb2.Hit]) -> tuple[corpus_pb2.Hit, ...]:
    """Partitioned stably: ok first, then what nothing judged, then the rest; inside a group a
    correction stands before what it replaced."""
    ordered: list[corpus_pb2.Hit] = []
    for hit in sorted(hits, key=_group):
        ordered.insert(_place(hit, ordered), hit)
    return tuple(ordered)


def _group(hit: corpus_pb2.Hit) -> int:
    return _QUALIFIED.index(hit.verdict) if hit.verdict in _QUALIFIED else len(_QUALIFIED)


def _place(hit: corpus_pb2.Hit, ordered: Sequence[corpus_pb2.Hit]) -> int:
    for position, earlier in enumerate(ordered):
        replaces = earlier.superseded_by and earlier.superseded_by == hit.provenance.source_uri
        if replaces and _group(earlier) == _group(hit):
            return position
    return len(ordered)


def unranked(hits: Sequence[corpus_pb2.Hit]) -> Ranked:
    """The hits in fused order, marked: no reranker answered."""
    return Ranked(hits=tuple(hits), degraded=(RERANK_UNAVAILABLE,))


def failed_tiers(tiers: Iterable[rerank_pb2.FailedTier]) -> list[str]:
    """``rerank:<tier>:<cause>`` for each tier that was not used."""
    return [f"rerank:{tier_name(failed.tier)}:{failed.cause}" for failed in tiers]


def tier_name(tier: rerank_pb2.Tier.ValueType) -> str:
    """``jev``, ``luna`` or ``rrf``; empty when unspecified or unknown."""
    names = {
        rerank_pb2.TIER_JEV: "jev",
        rerank_pb2.TIER_LUNA: "luna",
        rerank_pb2.TIER_RRF: "rrf",
    }
    return names.get(tier, "")


def _evidence(hit: corpus_pb2.Hit, rerank_score: float | None) -> answer_pb2.Evidence:
    # An unset optional field of the hit stays unset in the evidence.
    return answer_pb2.Evidence(
        message=hit.message,
        fused_score=hit.fused_score,
        rerank_score=rerank_score,
        cosine=hit.cosine if hit.HasField("cosine") else None,
        dense_rank=hit.dense_rank if hit.HasField("dense_rank") else None,
        lexical_rank=hit.lexical_rank if hit.HasField("lexical_rank") else None,
        term_coverage=hit.term_coverage if hit.HasField("term_coverage") else None,
    )
