"""Facts and cards: what is a fact, what a card's hash covers, what is left of a replaced fact."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from typing import Any

import pytest

from services.ingest.facts import (
    Card,
    Fact,
    FactError,
    declared_facts,
    ended_by,
    read_fact,
    sealed_card,
    windows_overlap,
)

FACT = {"namespace": "service", "subject": "api", "predicate": "owner", "object": "Ada"}


def fact(**parts: Any) -> Fact:
    return Fact(**{**FACT, **parts})


def window(first: str = "", last: str = "") -> Fact:
    return read_fact({**FACT, "valid_from": first, "valid_until": last})


def test_a_fact_is_read_of_its_parts() -> None:
    given = {**FACT, "object": " Ada ", "context": "production", "valid_from": "2026-01-02"}
    assert read_fact(given) == fact(context="production", valid_from=date(2026, 1, 2))


def test_a_day_that_the_frontmatter_reader_made_a_date_is_the_same_day() -> None:
    assert read_fact({**FACT, "valid_until": date(2026, 1, 2)}) == window(last="2026-01-02")


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({**FACT, "subject": " "}, "subject"),
        ({"namespace": "service"}, "subject"),
        ({**FACT, "object": 7}, "object"),
        ({**FACT, "valid_from": "2026-02-30"}, "valid_from"),
        ({**FACT, "valid_from": "20260203"}, "valid_from"),
        ({**FACT, "valid_from": "2026-02-03", "valid_until": "2026-02-02"}, "valid_until"),
        ({**FACT, "confidence": "1"}, "confidence"),
    ],
)
def test_what_is_no_fact_names_the_part(given: dict[str, Any], field: str) -> None:
    with pytest.raises(FactError) as raised:
        read_fact(given)
    assert raised.value.field == field


def test_a_declaration_that_is_no_fact_is_left_out_and_the_others_stand() -> None:
    declared = [FACT, "prose", None, {**FACT, "object": ""}, FACT, {**FACT, "object": "Bo"}]
    assert declared_facts(declared) == (fact(), fact(object="Bo"))


CARD = sealed_card(Card("", "g1", "notes", "file:///a.md", "aa", "pipeline", "cal", (fact(),), ""))


@pytest.mark.parametrize(
    "changed",
    [
        {"card_id": "card-0"}, {"generation_id": "g2"}, {"channel_id": "other"},
        {"source_uri": "file:///b.md"}, {"source_sha256": "bb"}, {"calibration_id": ""},
        {"pipeline_fingerprint": "p"}, {"facts": (fact(object="Bo"),)}, {"card_sha256": "00"},
    ],
)  # fmt: skip
def test_every_change_of_a_card_breaks_its_hash(changed: dict[str, Any]) -> None:
    assert CARD.is_intact
    assert not replace(CARD, **changed).is_intact


def test_the_same_evidence_makes_the_same_card() -> None:
    assert sealed_card(replace(CARD, card_id="", card_sha256="")) == CARD


@pytest.mark.parametrize(
    ("left", "right", "overlap"),
    [
        (("", ""), ("", ""), True),
        (("2026-01-01", ""), ("", "2026-01-01"), True),
        (("2026-01-02", ""), ("", "2026-01-01"), False),
        (("2026-01-01", "2026-01-31"), ("2026-02-01", ""), False),
        (("2026-01-01", "2026-02-28"), ("2026-02-01", "2026-02-02"), True),
    ],
)
def test_windows_overlap_when_one_day_is_in_both(
    left: tuple[str, str], right: tuple[str, str], overlap: bool
) -> None:
    assert windows_overlap(window(*left), window(*right)) is overlap
    assert windows_overlap(window(*right), window(*left)) is overlap


@pytest.mark.parametrize(
    ("held", "replacement", "left"),
    [
        (("", ""), ("", ""), None),
        (("", ""), ("2026-02-01", ""), ("", "2026-01-31")),
        (("2026-02-01", ""), ("2026-02-01", ""), None),
        (("2026-01-01", "2026-01-15"), ("2026-02-01", ""), ("2026-01-01", "2026-01-15")),
    ],
)
def test_a_replaced_fact_holds_until_the_day_before_its_replacement(
    held: tuple[str, str], replacement: tuple[str, str], left: tuple[str, str] | None
) -> None:
    assert ended_by(window(*held), window(*replacement)) == (window(*left) if left else None)
