"""What a reasoning follows, and each limit of its budget."""

from __future__ import annotations

from typing import Any

import pytest

from recall.corpus.v1 import corpus_pb2
from recall.gateway.v1 import gateway_pb2
from services.gateway.reason_trail import LEAD_WORDS, Budget, Lead, Trail, budget_of, trusted
from services.runtime.errors import CallError


def hit(name: str, text: str = "three small words", verdict: str = "OK") -> corpus_pb2.Hit:
    return corpus_pb2.Hit(
        message=corpus_pb2.Message(message_id=name, text=text),
        verdict=corpus_pb2.Verdict.Value(f"VERDICT_{verdict}"),
    )


def trail(**limits: Any) -> Trail:
    return Trail("who?", Budget(**{
        "steps": 12, "hops": 1, "evidence_tokens": 2_048, "milliseconds": 1_000, **limits
    }))  # fmt: skip


def test_only_trusted_hits_are_evidence() -> None:
    hits = [hit("a"), hit("b", verdict="UNVERIFIED"), hit("c", verdict="SUPERSEDED")]
    assert trusted(hits) == [hits[0]]


def test_the_question_is_searched_first_and_each_hit_leads_one_hop_further() -> None:
    path = trail()
    assert path.next_lead() == Lead("who?")
    assert path.follow(Lead("who?"), [hit("a"), hit("b")]) == 2
    first, second = path.next_lead(), path.next_lead()
    assert first == Lead("who? three small words", 1, "a")
    assert second is not None and second.message_id == "b"
    assert path.follow(Lead("x", 1, "a"), [hit("a"), hit("c")]) == 1
    assert path.next_lead() is None
    assert (path.steps, path.hops, path.tokens, path.exhausted) == (3, 1, 9, "")
    assert [one.message.message_id for one in path.evidence] == ["a", "b", "c"]


def test_hops_lead_as_far_as_the_budget_says() -> None:
    path = trail(hops=2)
    lead, names = path.next_lead(), iter("abcdef")
    while lead is not None:
        path.follow(lead, [hit(next(names))])
        lead = path.next_lead()
    assert (path.hops, len(path.evidence)) == (2, 3)


def test_steps_end_the_search() -> None:
    path = trail(steps=1)
    path.follow(path.next_lead() or Lead(""), [hit("a")])
    assert path.next_lead() is None
    assert path.exhausted == "steps"


def test_words_of_evidence_end_what_is_taken() -> None:
    path = trail(evidence_tokens=7)
    assert path.follow(Lead("who?"), [hit("a"), hit("b"), hit("c")]) == 2
    assert (path.tokens, path.exhausted) == (6, "evidence_tokens")


def test_a_long_message_leads_with_its_beginning() -> None:
    path = trail()
    path.follow(path.next_lead() or Lead(""), [hit("a", "word " * 500)])
    lead = path.next_lead()
    assert lead is not None and len(lead.words.split()) == LEAD_WORDS + 1


def test_zero_takes_the_default() -> None:
    assert budget_of(gateway_pb2.ReasonBudget()) == Budget(12, 1, 2_048, 30_000)
    assert budget_of(gateway_pb2.ReasonBudget(steps=3)).steps == 3


@pytest.mark.parametrize(
    "limits", [{"steps": 33}, {"hops": -1}, {"evidence_tokens": 100_001}, {"milliseconds": 60_001}]
)
def test_a_limit_out_of_range_is_named(limits: dict[str, int]) -> None:
    with pytest.raises(CallError) as raised:
        budget_of(gateway_pb2.ReasonBudget(**limits))
    assert raised.value.message.startswith(f"budget.{next(iter(limits))}: ")
