"""Each of the ledger's decisions, and the order in which they are tried."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.ingest.fact_decision import (
    CurrentSource,
    Fresh,
    HeldFact,
    Standing,
    Verdict,
    decide,
)
from services.ingest.facts import Card, Fact, sealed_card

TODAY = date(2026, 3, 2)
FACT = Fact("service", "api", "owner", "Ada")
URI = "file:///owners.md"


def card(**parts: Any) -> Card:
    made: dict[str, Any] = {
        "card_id": "", "generation_id": "g1", "channel_id": "notes", "source_uri": URI,
        "source_sha256": "aa", "pipeline_fingerprint": "p1", "calibration_id": "cal",
        "facts": (FACT,), "card_sha256": "",
    }  # fmt: skip
    return sealed_card(Card(**{**made, **parts}))


def standing(made: Card | None = None, **parts: Any) -> Standing:
    """A card that passes every check, but for what is given."""
    made = made or card()
    good: dict[str, Any] = {
        "card_id": made.card_id, "card": made, "serving_generation_id": "g1",
        "pipeline_fingerprint": "p1", "published_calibration_id": "cal",
        "current": CurrentSource("aa", made.facts, None, None),
        "fresh": Fresh(True, "g1", "cal", frozenset({URI})),
    }  # fmt: skip
    return Standing(**{**good, **parts})


def source(**parts: Any) -> CurrentSource:
    return replace(CurrentSource("aa", (FACT,), None, None), **parts)


# In the order in which they are tried: each is refused whatever comes after it.
REFUSALS: list[tuple[Verdict, dict[str, Any]]] = [
    (Verdict.CARD_NOT_FOUND, {"card": None}),
    (Verdict.CARD_TAMPERED, {"card": replace(card(), source_sha256="bb")}),
    (Verdict.GENERATION_MISMATCH, {"serving_generation_id": "g2"}),
    (Verdict.LINEAGE_MISMATCH, {"pipeline_fingerprint": "p2"}),
    (Verdict.SOURCE_CHANGED, {"current": None}),
    (Verdict.SOURCE_CHANGED, {"current": source(facts=())}),
    (Verdict.TRUST_UNAVAILABLE, {"published_calibration_id": "another"}),
    (Verdict.VALIDITY_EXPIRED, {"current": source(valid_until=date(2026, 3, 1))}),
    (Verdict.VALIDITY_NOT_STARTED, {"current": source(valid_from=date(2026, 3, 3))}),
    (Verdict.SOURCE_CHANGED, {"current": source(sha256="bb")}),
    (Verdict.FRESH_SEARCH_UNAVAILABLE, {"fresh": None}),
    (Verdict.FRESH_SEARCH_UNAVAILABLE, {"fresh": Fresh(False, "", "", frozenset())}),
    (Verdict.FRESH_SEARCH_INSUFFICIENT, {"fresh": Fresh(True, "g1", "cal", frozenset())}),
    (Verdict.FRESH_SEARCH_INSUFFICIENT, {"fresh": Fresh(True, "g2", "cal", frozenset({URI}))}),
    (Verdict.FRESH_SEARCH_INSUFFICIENT, {"fresh": Fresh(True, "g1", "", frozenset({URI}))}),
]


@pytest.mark.parametrize(("verdict", "parts"), REFUSALS)
def test_what_is_wrong_with_a_card_refuses_the_fact(
    verdict: Verdict, parts: dict[str, Any]
) -> None:
    assert decide(FACT, [standing(**parts)], [], TODAY).verdict is verdict


def test_a_card_without_facts_supports_none() -> None:
    bare = card(facts=())
    assert decide(FACT, [standing(bare)], [], TODAY).verdict is Verdict.UNSUPPORTED_CLAIM


def test_a_card_that_nothing_calibrated_is_not_trusted() -> None:
    bare = card(calibration_id="")
    decided = decide(FACT, [standing(bare, published_calibration_id="")], [], TODAY)
    assert decided.verdict is Verdict.TRUST_UNAVAILABLE


@pytest.mark.parametrize("earlier", range(len(REFUSALS)))
def test_the_earlier_check_wins(earlier: int) -> None:
    verdict, parts = REFUSALS[earlier]
    for _, later in REFUSALS[earlier + 1 :]:
        both = {**later, **parts}
        assert decide(FACT, [standing(**both)], [], TODAY).verdict is verdict


@pytest.mark.parametrize(
    "claim",
    [
        replace(FACT, object="Bo"), replace(FACT, context="test"),
        replace(FACT, valid_from=date(2026, 1, 1)), replace(FACT, namespace="Service"),
    ],
)  # fmt: skip
def test_only_the_very_fact_that_a_card_declares_is_supported(claim: Fact) -> None:
    assert decide(claim, [standing()], [], TODAY).verdict is Verdict.UNSUPPORTED_CLAIM


@pytest.mark.parametrize(
    ("valid_from", "valid_until"),
    [(TODAY, None), (None, TODAY), (TODAY, TODAY), (None, None)],
)
def test_both_days_of_a_document_s_validity_belong_to_it(
    valid_from: date | None, valid_until: date | None
) -> None:
    current = source(valid_from=valid_from, valid_until=valid_until)
    assert decide(FACT, [standing(current=current)], [], TODAY).verdict is Verdict.APPLIED


def test_one_card_that_fails_refuses_the_fact_wherever_it_stands() -> None:
    cards = [standing(), Standing("card-unknown")]
    for order in (cards, cards[::-1]):
        assert decide(FACT, order, [], TODAY).verdict is Verdict.CARD_NOT_FOUND


def test_one_confirmed_card_is_enough() -> None:
    other = card(source_uri="file:///elsewhere.md")
    cards = [standing(other), standing()]
    assert decide(FACT, cards, [], TODAY).verdict is Verdict.APPLIED


def held(event_id: str = "e1", is_replaced: bool = False, **parts: Any) -> HeldFact:
    return HeldFact(event_id, replace(FACT, **parts), is_replaced)


def test_the_same_fact_again_is_a_duplicate() -> None:
    decided = decide(FACT, [standing()], [held()], TODAY)
    assert (decided.verdict, decided.asserted_event_id) == (Verdict.DUPLICATE, "e1")


@pytest.mark.parametrize(
    ("parts", "verdict"),
    [
        ({"object": "Bo"}, Verdict.CONTRADICTION_WITHOUT_SUPERSESSION),
        ({"object": "Bo", "context": "test"}, Verdict.APPLIED),
        ({"object": "Bo", "subject": "web"}, Verdict.APPLIED),
        ({"object": "Bo", "predicate": "deputy"}, Verdict.APPLIED),
        ({"object": "Bo", "namespace": "team"}, Verdict.APPLIED),
        ({"valid_from": date(2026, 1, 1)}, Verdict.APPLIED),
    ],
)
def test_only_another_value_of_the_same_contradicts(
    parts: dict[str, Any], verdict: Verdict
) -> None:
    assert decide(FACT, [standing()], [held(**parts)], TODAY).verdict is verdict


def test_another_value_for_another_time_does_not_contradict() -> None:
    ended = held(object="Bo", valid_until=date(2026, 1, 31))
    claim = replace(FACT, valid_from=date(2026, 2, 1))
    made = card(facts=(claim,))
    assert decide(claim, [standing(made)], [ended], TODAY).verdict is Verdict.APPLIED


def test_every_contradicted_fact_must_be_replaced_as_authored() -> None:
    replaced = held("e1", True, object="Bo")
    kept = held("e2", False, object="Cy", valid_until=date(2030, 1, 1))
    decided = decide(FACT, [standing()], [replaced, kept], TODAY)
    assert decided.verdict is Verdict.CONTRADICTION_WITHOUT_SUPERSESSION
    decided = decide(FACT, [standing()], [replaced, replace(kept, is_replaced=True)], TODAY)
    assert decided.verdict is Verdict.APPLIED
    assert [one.event_id for one in decided.ended] == ["e1", "e2"]


PARTS = [parts for _, parts in REFUSALS] + [{}]


@given(st.lists(st.sampled_from(PARTS), min_size=1, max_size=5), st.randoms())
def test_the_order_of_the_cards_does_not_matter(chosen: list[dict[str, Any]], random: Any) -> None:
    cards = [standing(**parts) for parts in chosen]
    shuffled = list(cards)
    random.shuffle(shuffled)
    first, second = (decide(FACT, order, [], TODAY).verdict for order in (cards, shuffled))
    assert first is second
