"""Reasoning over real gRPC: steps on one pin, budgets, and one outcome whatever happens."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from typing import Any

import grpc
import pytest

from recall.answer.v1 import answer_pb2
from recall.corpus.v1 import corpus_pb2
from recall.error.v1 import error_pb2
from recall.gateway.v1 import gateway_pb2, gateway_pb2_grpc
from recall.retrieve.v1 import retrieve_pb2
from services.gateway.directory import Directory
from services.gateway.grpc_service import SERVICE_NAME, RecallService
from services.runtime.callers import Callers
from services.runtime.errors import CallError, unavailable
from services.runtime.server import Servicers
from tests.conftest import Serve
from tests.scripted_stages import Script, ScriptedRetrieve, always, failing, hit, message, served

OWNER = message(1, "The api service belongs to the harbour team.")
LEAD = message(2, "Bo leads the harbour team.")
NOISE = message(3, "Lunch is soup.")
QUESTION = "Who leads the team of the api service?"
OUTCOMES = gateway_pb2.ReasonOutcome


def ok(found: corpus_pb2.Message, verdict: str = "OK") -> corpus_pb2.Hit:
    made = hit(found, 0)
    made.verdict = corpus_pb2.Verdict.Value(f"VERDICT_{verdict}")
    return made


class Library:
    """Finds the owner by the question, and the lead only by the owner's own words."""

    def __init__(self) -> None:
        self.requests: list[Any] = []

    async def __call__(self, request: Any) -> retrieve_pb2.SearchResponse:
        self.requests.append(request)
        led = "harbour" in request.question
        hits = [ok(LEAD), ok(OWNER)] if led else [ok(OWNER), ok(NOISE, "LOW_CONFIDENCE")]
        return retrieve_pb2.SearchResponse(
            pin=request.pin, hits=hits, calibration_id="c1", question=request.question
        )


@pytest.fixture
def library() -> Library:
    return Library()


@pytest.fixture
def script(library: Library) -> Script:
    retrieve = ScriptedRetrieve([OWNER, LEAD, NOISE])
    retrieve.search_reply = library
    return Script(retrieve)


@pytest.fixture
async def stub(
    script: Script, callers: Callers, serve: Serve
) -> AsyncIterator[gateway_pb2_grpc.RecallServiceAsyncStub]:
    async with served(script, callers) as stages:
        service = RecallService(stages, Directory(stages, time.monotonic))
        servicers = Servicers(
            lambda s: gateway_pb2_grpc.add_RecallServiceServicer_to_server(service, s),
            (SERVICE_NAME,),
        )
        async with serve(servicers) as peer:
            yield gateway_pb2_grpc.RecallServiceStub(peer.channel())


async def reasoned(
    stub: gateway_pb2_grpc.RecallServiceAsyncStub, question: str = QUESTION, **limits: Any
) -> tuple[list[gateway_pb2.ReasonStep], gateway_pb2.ReasonResult]:
    """The steps and the result, which comes last and once."""
    request = gateway_pb2.ReasonRequest(
        question=question, budget=gateway_pb2.ReasonBudget(**limits)
    )
    events = [event async for event in stub.Reason(request)]
    assert [event.HasField("result") for event in events] == [False] * (len(events) - 1) + [True]
    return [event.step for event in events[:-1]], events[-1].result


def ids(messages: Any) -> list[str]:
    return [each.message_id for each in messages]


async def test_evidence_leads_to_what_the_question_alone_does_not_find(
    stub: gateway_pb2_grpc.RecallServiceAsyncStub, library: Library, script: Script
) -> None:
    steps, result = await reasoned(stub)
    assert [(step.hop, step.led_by_message_id, step.new_evidence) for step in steps] == [
        (0, "", 1), (1, OWNER.message_id, 1),
    ]  # fmt: skip
    assert result.outcome == OUTCOMES.REASON_OUTCOME_ANSWERED
    assert ids(each.message for each in result.evidence) == ids([OWNER, LEAD])
    assert set(ids(result.citations)) <= set(ids([OWNER, LEAD]))
    assert (result.spent.steps, result.spent.hops, result.exhausted) == (2, 1, "")
    assert result.spent.evidence_tokens == 13
    given = [ids(e.message for e in r.evidence) for r in script.answer.requests]
    assert given == [ids([OWNER, LEAD])]


async def test_every_step_is_strict_and_on_the_first_step_s_pin(
    stub: gateway_pb2_grpc.RecallServiceAsyncStub, library: Library
) -> None:
    _, result = await reasoned(stub)
    assert {request.pin.generation_id for request in library.requests} == {"g1"}
    assert {r.trust_mode for r in library.requests} == {corpus_pb2.TRUST_MODE_STRICT}
    assert (result.generation_id, result.calibration_id) == ("g1", "c1")


@pytest.mark.parametrize("question", ["", "  ", "?!"])
async def test_a_question_without_words_is_asked_back_before_anything_is_searched(
    stub: gateway_pb2_grpc.RecallServiceAsyncStub, library: Library, question: str
) -> None:
    steps, result = await reasoned(stub, question)
    assert result.outcome == OUTCOMES.REASON_OUTCOME_NEEDS_CLARIFICATION
    assert (steps, library.requests) == ([], [])


async def test_without_trust_it_abstains_and_names_the_refusal(
    stub: gateway_pb2_grpc.RecallServiceAsyncStub, script: Script
) -> None:
    refusal = CallError(
        grpc.StatusCode.FAILED_PRECONDITION,
        error_pb2.ERROR_REASON_CALIBRATION_MISSING,
        "Nothing was searched.",
    )
    script.retrieve.search_reply = failing(refusal)
    _, result = await reasoned(stub)
    assert result.outcome == OUTCOMES.REASON_OUTCOME_ABSTAINED
    assert (result.refusal, list(result.evidence)) == ("CALIBRATION_MISSING", [])


async def test_without_trusted_evidence_it_abstains_and_nobody_writes(
    stub: gateway_pb2_grpc.RecallServiceAsyncStub, script: Script
) -> None:
    reply = retrieve_pb2.SearchResponse(hits=[ok(NOISE, "LOW_CONFIDENCE")], reason="below")
    script.retrieve.search_reply = always(reply)
    _, result = await reasoned(stub)
    assert (result.outcome, result.reason) == (OUTCOMES.REASON_OUTCOME_ABSTAINED, "below")
    assert script.answer.requests == []


async def test_a_writer_that_is_away_leaves_evidence_without_an_answer(
    stub: gateway_pb2_grpc.RecallServiceAsyncStub, script: Script
) -> None:
    away = unavailable(error_pb2.ERROR_REASON_WRITER_UNAVAILABLE, "The writer is away.")
    script.answer.reply = failing(away)
    _, result = await reasoned(stub)
    assert (result.outcome, result.reason) == (
        OUTCOMES.REASON_OUTCOME_NO_ANSWER, "The writer is away.",
    )  # fmt: skip
    assert len(result.evidence) == 2


async def test_a_citation_that_is_no_evidence_is_not_shown(
    stub: gateway_pb2_grpc.RecallServiceAsyncStub, script: Script
) -> None:
    written = answer_pb2.WrittenText(
        outcome=corpus_pb2.OUTCOME_ANSWERED, text="Soup.", cited_message_ids=[NOISE.message_id]
    )
    script.answer.reply = always(written)
    _, result = await reasoned(stub)
    assert result.outcome == OUTCOMES.REASON_OUTCOME_NO_ANSWER
    assert "Soup" not in result.text and not result.citations


async def test_evidence_that_went_meanwhile_is_not_shown(
    stub: gateway_pb2_grpc.RecallServiceAsyncStub, script: Script
) -> None:
    script.retrieve.before_read[1] = lambda: script.retrieve.deleted.add(OWNER.message_id)
    _, result = await reasoned(stub)
    assert result.outcome == OUTCOMES.REASON_OUTCOME_NO_ANSWER
    assert ids(each.message for each in result.evidence) == [LEAD.message_id]
    assert not result.citations


async def test_the_budget_of_steps_ends_the_search_and_the_answer_is_written_from_what_there_is(
    stub: gateway_pb2_grpc.RecallServiceAsyncStub,
) -> None:
    steps, result = await reasoned(stub, steps=1)
    assert (len(steps), result.exhausted) == (1, "steps")
    assert ids(each.message for each in result.evidence) == [OWNER.message_id]
    assert result.outcome == OUTCOMES.REASON_OUTCOME_ANSWERED


async def test_the_budget_of_words_ends_the_evidence(
    stub: gateway_pb2_grpc.RecallServiceAsyncStub,
) -> None:
    _, result = await reasoned(stub, evidence_tokens=9)
    assert (result.spent.evidence_tokens, result.exhausted) == (8, "evidence_tokens")


async def test_the_budget_of_time_ends_it_with_what_was_spent(
    stub: gateway_pb2_grpc.RecallServiceAsyncStub,
) -> None:
    _, result = await reasoned(stub, milliseconds=1)
    assert result.outcome == OUTCOMES.REASON_OUTCOME_NO_ANSWER
    assert result.exhausted == "milliseconds"
    assert result.spent.milliseconds >= 1


@pytest.mark.parametrize("expand_graph", [False, True])
async def test_neighbours_are_evidence_only_when_asked_for_and_trusted(
    stub: gateway_pb2_grpc.RecallServiceAsyncStub, script: Script, expand_graph: bool
) -> None:
    script.retrieve.search_reply = always(retrieve_pb2.SearchResponse(hits=[ok(OWNER)]))
    script.retrieve.neighbours = [ok(LEAD), ok(NOISE, "LOW_CONFIDENCE")]
    request = gateway_pb2.ReasonRequest(question=QUESTION, expand_graph=expand_graph)
    events = [event async for event in stub.Reason(request)]
    found = ids(each.message for each in events[-1].result.evidence)
    assert found == ids([OWNER, LEAD] if expand_graph else [OWNER])


async def test_an_outage_of_retrieve_is_an_error_and_no_outcome(
    stub: gateway_pb2_grpc.RecallServiceAsyncStub, script: Script
) -> None:
    down = unavailable(error_pb2.ERROR_REASON_DATABASE_UNAVAILABLE, "The database is away.")
    script.retrieve.search_reply = failing(down)
    with pytest.raises(grpc.aio.AioRpcError) as raised:
        await reasoned(stub)
    assert raised.value.code() is grpc.StatusCode.UNAVAILABLE
