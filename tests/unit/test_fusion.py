"""Reciprocal rank fusion: the described arithmetic, one tie rule."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from services.retrieve.fusion import Arm, Candidate, FusedMessage, reciprocal_rank_fusion

BEGIN = datetime(2026, 9, 1, tzinfo=UTC)


def chunk(chunk_id: str, *message_ids: str, kind: str = "message") -> Candidate:
    return Candidate(chunk_id, kind, 0.0, message_ids)


def fuse(
    dense: list[Candidate], lexical: list[Candidate], minutes: dict[str, int] | None = None
) -> list[FusedMessage]:
    listed = {m for candidate in (*dense, *lexical) for m in candidate.message_ids}
    posted_at = {m: BEGIN + timedelta(minutes=(minutes or {}).get(m, 0)) for m in listed}
    return reciprocal_rank_fusion({Arm.DENSE: dense, Arm.LEXICAL: lexical}, posted_at)


def test_dense_rank_0_and_lexical_rank_1_give_0_191() -> None:
    best, *_ = fuse([chunk("a", "m1")], [chunk("b", "m2"), chunk("a", "m1")])
    assert best.message_id == "m1"
    assert round(best.score, 3) == 0.191
    assert (best.rank_in(Arm.DENSE), best.rank_in(Arm.LEXICAL)) == (0, 1)


def test_every_chunk_of_each_list_adds_to_every_message_it_contains() -> None:
    own, thread = chunk("own", "m1"), chunk("thread", "m1", "m2", kind="thread")
    first, second = fuse([own, thread], [thread])
    assert first.message_id == "m1"
    assert first.score == 1 / 10 + 1 / 11 + 1 / 10
    assert second.score == 1 / 11 + 1 / 10
    assert [(c.arm, c.chunk_id, c.rank) for c in first.contributions] == [
        (Arm.DENSE, "own", 0),
        (Arm.DENSE, "thread", 1),
        (Arm.LEXICAL, "thread", 0),
    ]


def test_a_chunk_without_messages_keeps_its_rank() -> None:
    (only,) = fuse([chunk("filtered"), chunk("own", "m1")], [])
    assert only.score == 1 / 11
    assert only.rank_in(Arm.LEXICAL) is None


def test_a_message_named_twice_in_a_chunk_counts_once() -> None:
    (only,) = fuse([chunk("piece", "m1", "m1")], [])
    assert only.score == 1 / 10


def test_ties_go_to_the_better_rank_then_the_newer_message_then_the_smaller_id() -> None:
    # 1/19 + 1/171 is exactly no multiple of other shares; two lists of the same ranks tie.
    same = fuse(
        [chunk("a", "old", "new", "b-twin", "a-twin")],
        [],
        {"old": 0, "new": 5, "a-twin": 3, "b-twin": 3},
    )
    assert [m.message_id for m in same] == ["new", "a-twin", "b-twin", "old"]
    # 1/15 + 1/30 = 1/10: an equal score from worse ranks stands behind, though it is newer.
    dense = [chunk("top", "single"), *(chunk(f"d{i}") for i in range(1, 5)), chunk("x", "double")]
    lexical = [*(chunk(f"l{i}") for i in range(20)), chunk("y", "double")]
    single, double = fuse(dense, lexical, {"single": 0, "double": 9})
    assert single.score == double.score
    assert (single.message_id, double.message_id) == ("single", "double")


message_ids = st.lists(st.sampled_from([f"m{i}" for i in range(12)]), max_size=4).map(tuple)
lists = st.lists(message_ids, max_size=30).map(
    lambda contents: [Candidate(f"c{i}", "thread", 0.0, ids) for i, ids in enumerate(contents)]
)


@given(lists, lists)
def test_the_score_is_the_sum_of_its_parts_and_orders_the_result(
    dense: list[Candidate], lexical: list[Candidate]
) -> None:
    fused = fuse(dense, lexical)
    expected: dict[str, float] = {}
    for ranking in (dense, lexical):
        for rank, candidate in enumerate(ranking):
            for message_id in set(candidate.message_ids):
                expected[message_id] = expected.get(message_id, 0.0) + 1 / (rank + 10)
    assert {m.message_id for m in fused} == set(expected)
    for message in fused:
        assert abs(message.score - expected[message.message_id]) < 1e-12
        assert message.best_rank == min(c.rank for c in message.contributions)
    assert [m.score for m in fused] == sorted((m.score for m in fused), reverse=True)


@given(lists, lists)
def test_swapping_the_arms_changes_no_score_and_no_order(
    dense: list[Candidate], lexical: list[Candidate]
) -> None:
    forwards, backwards = fuse(dense, lexical), fuse(lexical, dense)
    assert [(m.message_id, m.score) for m in forwards] == [
        (m.message_id, m.score) for m in backwards
    ]
