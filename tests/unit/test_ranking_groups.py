"""A reranker reorders only inside the groups that the trust gate made."""

from __future__ import annotations

from recall.corpus.v1 import corpus_pb2
from recall.rerank.v1 import rerank_pb2
from services.gateway.ranking import in_verdict_groups, qualified, reranked

OK, SUPERSEDED, LOW, UNVERIFIED = (
    corpus_pb2.VERDICT_OK,
    corpus_pb2.VERDICT_SUPERSEDED,
    corpus_pb2.VERDICT_LOW_CONFIDENCE,
    corpus_pb2.VERDICT_UNVERIFIED,
)


def hit(
    name: str, verdict: corpus_pb2.Verdict.ValueType, superseded_by: str = ""
) -> corpus_pb2.Hit:
    return corpus_pb2.Hit(
        message=corpus_pb2.Message(message_id=name),
        verdict=verdict,
        superseded_by=superseded_by,
        provenance=corpus_pb2.Provenance(source_uri=name),
    )


def ids(hits: object) -> list[str]:
    return [each.message.message_id for each in hits]  # type: ignore[attr-defined]


def test_a_reranker_never_lifts_a_hit_over_one_of_a_better_group() -> None:
    hits = [hit("a", OK), hit("b", OK), hit("c", LOW), hit("d", SUPERSEDED)]
    ranking = [rerank_pb2.RankedMessage(message_id=name) for name in "dcba"]
    assert ids(reranked(hits, rerank_pb2.RerankResponse(ranking=ranking)).hits) == list("badc")


def test_a_correction_stays_before_what_it_replaced_inside_its_group() -> None:
    hits = [hit("stale", SUPERSEDED, "fix"), hit("x", LOW), hit("fix", LOW), hit("y", OK)]
    assert ids(in_verdict_groups(hits)) == ["y", "fix", "stale", "x"]


def test_only_ok_and_unjudged_hits_are_evidence() -> None:
    hits = [hit("a", OK), hit("b", LOW), hit("c", UNVERIFIED), hit("d", SUPERSEDED)]
    assert ids(qualified(hits)) == ["a", "c"]
