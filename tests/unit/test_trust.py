"""The trust gate by tables: RE-call's observed facts, and its weak spots mended."""

from __future__ import annotations

from datetime import UTC, date, datetime
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.retrieve.abstention import abstention
from services.retrieve.supersession import Clocks, Edge, Item, Knowledge, Verdict
from services.retrieve.trust import Hit, judge, successors_wanted

NOW = datetime(2026, 6, 15, 12, tzinfo=UTC)
JUNE = datetime(2026, 6, 1, tzinfo=UTC)
JULY = datetime(2026, 7, 1, tzinfo=UTC)


def knowledge(
    *items: Item,
    edges: tuple[Edge, ...] = (),
    threshold: float | None = 0.75,
    now: datetime = NOW,
    known_as_of: datetime | None = None,
) -> Knowledge:
    return Knowledge(
        Clocks(now, known_as_of), {item.item_id: item for item in items}, edges, threshold
    )


def hit(item_id: str, confidence: float | None = 0.9) -> Hit:
    return Hit(item_id, item_id, confidence)


def verdicts(hits: list[Hit], known: Knowledge) -> dict[str, str]:
    return {one.hit.item_id: one.verdict.value for one in judge(hits, known)}


def replaced_by(hits: list[Hit], known: Knowledge) -> dict[str, str]:
    return {one.hit.item_id: one.superseded_by for one in judge(hits, known)}


@pytest.mark.parametrize(
    ("confidence", "verdict"),
    [(0.8, "ok"), (0.75, "ok"), (0.7, "low_confidence"), (None, "unverified")],
)
def test_a_hit_is_ok_from_the_threshold_on(confidence: float | None, verdict: str) -> None:
    assert verdicts([hit("a", confidence)], knowledge()) == {"a": verdict}


def test_without_a_threshold_every_hit_is_unverified_and_nothing_abstains() -> None:
    known = knowledge(threshold=None)
    judged = judge([hit("a", None), hit("b", None)], known)
    assert {one.verdict for one in judged} == {Verdict.UNVERIFIED}
    assert abstention(judged, known) == ""


@pytest.mark.parametrize(
    ("item", "verdict"),
    [
        (Item("a", valid_until=date(2026, 6, 14)), "expired"),
        (Item("a", valid_until=date(2026, 6, 15)), "ok"),
        (Item("a", valid_from=date(2026, 6, 16)), "not_yet_valid"),
        (Item("a", valid_from=date(2026, 6, 15)), "ok"),
        (Item("a", invalid_metadata="valid_until: no day"), "invalid_metadata"),
        (Item("a"), "ok"),
    ],
)
def test_windows_are_days_in_utc_both_ends_included(item: Item, verdict: str) -> None:
    assert verdicts([hit("a")], knowledge(item)) == {"a": verdict}


@pytest.mark.parametrize("second", [0, 59])
def test_a_window_ends_with_the_last_moment_of_its_day(second: int) -> None:
    late = datetime(2026, 6, 15, 23, 59, second, 999_999, UTC)
    assert verdicts([hit("a")], knowledge(Item("a", valid_until=date(2026, 6, 15)), now=late)) == {
        "a": "ok"
    }


def test_a_clock_without_a_zone_is_read_as_utc() -> None:
    naive = datetime(2026, 6, 16, 0, 0)
    item = Item("a", valid_until=date(2026, 6, 15))
    assert verdicts([hit("a")], knowledge(item, now=naive)) == {"a": "expired"}


@pytest.mark.parametrize(
    ("written_at", "verdict"), [(JULY, "not_yet_known"), (NOW, "ok"), (JUNE, "ok"), (None, "ok")]
)
def test_what_was_written_after_the_asked_instant_is_not_known(
    written_at: datetime | None, verdict: str
) -> None:
    known = knowledge(Item("a", written_at=written_at), known_as_of=NOW)
    assert verdicts([hit("a")], known) == {"a": verdict}


def test_the_first_verdict_in_precedence_wins() -> None:
    everything = Item(
        "a",
        written_at=JULY,
        valid_until=date(2026, 1, 1),
        invalid_metadata="x",
        depends_on=("gone",),
    )
    gone = Item("gone", valid_until=date(2026, 1, 1))
    edges: tuple[Edge, ...] = (Edge("b", "a"), Edge("c", "a", is_ambiguous=True))
    known = [everything]
    found = []
    for mended in (
        {},
        {"invalid_metadata": ""},
        {"written_at": None},
        "no ambiguous edge",
        "no edge",
        {"valid_until": None, "valid_from": date(2027, 1, 1)},
        {"valid_from": None},
        {"depends_on": ()},
    ):
        if isinstance(mended, dict):
            known.append(Item(**{**vars(known[-1]), **mended}))
        elif mended == "no ambiguous edge":
            edges = (Edge("b", "a"),)
        else:
            edges = ()
        given_now = knowledge(known[-1], gone, edges=edges, known_as_of=NOW)
        found.append(verdicts([hit("a", 0.1)], given_now)["a"])
    assert found == [
        "invalid_metadata",
        "not_yet_known",
        "ambiguous_supersession",
        "superseded",
        "expired",
        "not_yet_valid",
        "dependency_invalidated",
        "low_confidence",
    ]


def test_supersession_wins_over_any_confidence() -> None:
    known = knowledge(edges=(Edge("new", "old"),))
    judged = judge([hit("old", 1.0), hit("new", 0.1)], known)
    assert [(one.hit.item_id, one.verdict.value) for one in judged] == [
        ("new", "ok"),
        ("old", "superseded"),
    ]


def test_a_correction_carries_the_confidence_of_what_it_replaced() -> None:
    known = knowledge(edges=(Edge("new", "old"),))
    [new, _] = judge([hit("old", 0.9), hit("new", 0.1)], known)
    assert (new.confidence, new.supersedes) == (0.9, "old")


def test_a_correction_of_what_was_no_match_is_no_match_either() -> None:
    known = knowledge(edges=(Edge("new", "old"),))
    assert verdicts([hit("old", 0.2), hit("new", 0.1)], known)["new"] == "low_confidence"


CHAIN = (Edge("b", "a"), Edge("c", "b"))


@pytest.mark.parametrize(
    ("end", "expected"),
    [
        (Item("c"), {"a": "c", "b": "c", "c": ""}),
        (Item("c", valid_until=date(2026, 1, 1)), {"a": "b", "b": "", "c": ""}),
        (Item("c", valid_from=date(2027, 1, 1)), {"a": "b", "b": "", "c": ""}),
        (Item("c", invalid_metadata="x"), {"a": "b", "b": "", "c": ""}),
    ],
)
def test_a_chain_resolves_to_its_last_valid_member(end: Item, expected: dict[str, str]) -> None:
    known = knowledge(Item("a"), Item("b"), end, edges=CHAIN)
    assert replaced_by([hit("a"), hit("b"), hit("c")], known) == expected
    found = verdicts([hit("a"), hit("b"), hit("c")], known)
    assert found["a"] == "superseded"
    assert found["b"] == ("superseded" if expected["b"] else "ok")


def test_an_expired_replacement_is_not_recommended_and_revives_nothing() -> None:
    known = knowledge(
        Item("new", "new.md", valid_until=date(2026, 1, 1)), edges=(Edge("new", "old"),)
    )
    judged = judge([hit("old"), hit("new")], known)
    assert {one.hit.item_id: one.verdict.value for one in judged} == {
        "old": "superseded",
        "new": "expired",
    }
    assert not any(one.superseded_by for one in judged)
    assert successors_wanted([hit("old")], known) == []
    assert abstention(judged[:1], known) == (
        "The best match, “old”, was replaced by “new.md”, which does not hold now."
    )


def test_a_replacement_that_does_not_hold_yet_replaces_nothing_yet() -> None:
    known = knowledge(Item("new", valid_from=date(2027, 1, 1)), edges=(Edge("new", "old"),))
    assert verdicts([hit("old"), hit("new")], known) == {"old": "ok", "new": "not_yet_valid"}


def test_a_cycle_ends_at_the_direct_successor_and_a_claim_on_itself_is_ignored() -> None:
    cycle = knowledge(edges=(Edge("b", "a"), Edge("a", "b")))
    assert replaced_by([hit("a"), hit("b")], cycle) == {"a": "b", "b": "a"}
    assert verdicts([hit("a")], knowledge(edges=(Edge("a", "a"),))) == {"a": "ok"}


def test_only_claims_known_at_the_asked_instant_count() -> None:
    edges = (Edge("b", "a", JUNE), Edge("c", "b", JULY))
    known = knowledge(edges=edges, known_as_of=NOW)
    assert replaced_by([hit("a"), hit("b")], known) == {"a": "b", "b": ""}
    undated = knowledge(edges=(Edge("b", "a"),), known_as_of=NOW)
    assert replaced_by([hit("a")], undated) == {"a": "b"}
    at_that_instant = knowledge(edges=(Edge("b", "a", NOW),), known_as_of=NOW)
    assert replaced_by([hit("a")], at_that_instant) == {"a": "b"}


@pytest.mark.parametrize(
    "edges",
    [
        (Edge("late", "a", JULY), Edge("early", "a", JUNE)),
        (Edge("early", "a", JUNE), Edge("late", "a", JULY)),
        (Edge("late", "a", JULY), Edge("undated", "a")),
    ],
)
def test_the_later_claim_wins_and_a_dated_one_beats_an_undated(edges: tuple[Edge, ...]) -> None:
    assert replaced_by([hit("a")], knowledge(edges=edges)) == {"a": "late"}


def test_a_bad_prerequisite_invalidates_whatever_builds_on_it() -> None:
    items = (
        Item("a", depends_on=("b",)),
        Item("b", depends_on=("c",)),
        Item("c", valid_until=date(2026, 1, 1)),
    )
    assert verdicts([hit("a")], knowledge(*items)) == {"a": "dependency_invalidated"}
    assert verdicts([hit("a")], knowledge(*items[:2], Item("c"))) == {"a": "ok"}


def test_ok_hits_come_first_in_retrieval_order_and_a_correction_where_what_it_replaced_stood() -> (
    None
):
    known = knowledge(edges=(Edge("fix", "stale"),))
    hits = [
        hit("low", 0.1),
        hit("stale", 0.9),
        hit("first", 0.8),
        hit("fix", 0.2),
        hit("last", 0.95),
    ]
    assert [one.hit.item_id for one in judge(hits, known)] == [
        "fix",
        "first",
        "last",
        "low",
        "stale",
    ]


def test_a_replacement_outside_the_results_is_wanted_once() -> None:
    known = knowledge(edges=(Edge("new", "a"), Edge("new", "b"), Edge("b", "x")))
    assert successors_wanted([hit("a"), hit("b")], known) == ["new"]
    assert successors_wanted([hit("a"), hit("new")], known) == []


def test_the_reason_is_about_the_most_confident_hit_and_names_it_safely() -> None:
    odd = Item("a", "no\x1b[31mte" + "x" * 200, valid_until=date(2026, 1, 1))
    known = knowledge(odd, Item("b"))
    judged = judge([hit("b", 0.1), hit("a", 0.9)], known)
    reason = abstention(judged, known)
    assert "held only until 2026-01-01" in reason
    assert "\x1b" not in reason
    assert len(reason) < 200


@pytest.mark.parametrize("confidence", [None, 0.5])
@pytest.mark.parametrize("order", [("a", "z"), ("z", "a")])
def test_of_equally_confident_hits_the_reason_is_about_the_first(
    order: tuple[str, str], confidence: float | None
) -> None:
    ended = date(2026, 1, 1)
    known = knowledge(Item("a", "a.md", valid_until=ended), Item("z", "z.md", valid_until=ended))
    judged = judge([hit(item_id, confidence) for item_id in order], known)
    assert f"{order[0]}.md" in abstention(judged, known)


IDS = st.sampled_from("abcdef")
EDGES = st.lists(st.builds(Edge, IDS, IDS, st.sampled_from([None, JUNE, JULY])), max_size=6)


@given(
    st.lists(st.tuples(IDS, st.floats(0, 1)), min_size=1, max_size=4, unique_by=lambda t: t[0]),
    EDGES,
)
def test_verdicts_do_not_depend_on_the_order_of_hits_or_claims(
    pairs: list[tuple[str, float]], edges: list[Edge]
) -> None:
    hits = [Hit(item_id, item_id, confidence) for item_id, confidence in pairs]
    expected = {
        one.hit.hit_id: (one.verdict, one.confidence, one.superseded_by)
        for one in judge(hits, knowledge(edges=tuple(edges)))
    }
    for order in permutations(hits):
        judged = judge(list(order), knowledge(edges=tuple(reversed(edges))))
        assert {
            one.hit.hit_id: (one.verdict, one.confidence, one.superseded_by) for one in judged
        } == expected


@given(st.lists(st.tuples(IDS, st.floats(0, 1)), min_size=1, max_size=6), EDGES)
def test_nothing_that_a_valid_item_replaced_is_ever_ok(
    pairs: list[tuple[str, float]], edges: list[Edge]
) -> None:
    hits = [Hit(str(i), item_id, confidence) for i, (item_id, confidence) in enumerate(pairs)]
    for one in judge(hits, knowledge(edges=tuple(edges))):
        replaced = any(e.older == one.hit.item_id and e.newer != e.older for e in edges)
        assert not (one.is_ok and replaced)
