"""The whole walk over real gRPC, and what becomes of it when a stage has a bad day."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace

import grpc
import pytest

from recall.answer.v1 import answer_pb2
from recall.corpus.v1 import corpus_pb2
from recall.error.v1 import error_pb2
from recall.gateway.v1 import gateway_pb2, gateway_pb2_grpc
from recall.rerank.v1 import rerank_pb2
from recall.retrieve.v1 import retrieve_pb2
from services.gateway.checking import UNVERIFIED_TEXT
from services.gateway.directory import Directory
from services.gateway.grpc_service import SERVICE_NAME, RecallService
from services.runtime.callers import Callers
from services.runtime.client import Peer
from services.runtime.errors import CallError, from_rpc_error, unavailable
from services.runtime.server import Listener, Servicers, serving
from tests.scripted_stages import (
    GENERATION,
    Reply,
    Script,
    ScriptedRetrieve,
    always,
    failing,
    hang,
    hit,
    message,
    served,
)

FIRST = message(1, "The deploy window is Tuesday.")
SECOND = message(2, "The deploy window moved to Thursday.", author="Bo")
SECRET = message(3, "The deploy budget is halved.", channel="leads")
IDS = [FIRST.message_id, SECOND.message_id]

Gateway = Callable[..., AbstractAsyncContextManager["gateway_pb2_grpc.RecallServiceAsyncStub"]]


@pytest.fixture
def script() -> Script:
    """Two readable messages and one in a private channel."""
    return Script(ScriptedRetrieve([FIRST, SECOND, SECRET]))


@pytest.fixture
def gateway(script: Script, callers: Callers) -> Gateway:
    """RecallService before the script's stages; ``absent`` names those that are down."""

    @asynccontextmanager
    async def serve_gateway(
        absent: tuple[str, ...] = (),
    ) -> AsyncIterator[gateway_pb2_grpc.RecallServiceAsyncStub]:
        async with served(script, callers, absent) as stages:
            service = RecallService(stages, Directory(stages, time.monotonic))
            servicers = Servicers(
                lambda s: gateway_pb2_grpc.add_RecallServiceServicer_to_server(service, s),
                (SERVICE_NAME,),
            )
            async with serving(Listener("127.0.0.1", 0), callers, servicers) as running:
                peer = Peer(f"127.0.0.1:{running.port}", lambda: callers.token_of("operator"))
                yield gateway_pb2_grpc.RecallServiceStub(peer.channel())
                await peer.close()

    return serve_gateway


async def events_of(
    stub: gateway_pb2_grpc.RecallServiceAsyncStub, seconds: float = 20, **fields: object
) -> list[gateway_pb2.AskResponse]:
    request = gateway_pb2.AskRequest(question="When is the deploy window?", **fields)  # type: ignore[arg-type]
    return [event async for event in stub.Ask(request, timeout=seconds)]


async def answer_of(
    stub: gateway_pb2_grpc.RecallServiceAsyncStub, seconds: float = 20, **fields: object
) -> gateway_pb2.Answer:
    return (await events_of(stub, seconds, **fields))[-1].answer


async def error_of(
    stub: gateway_pb2_grpc.RecallServiceAsyncStub, seconds: float = 20, **fields: object
) -> CallError:
    with pytest.raises(grpc.aio.AioRpcError) as raised:
        await events_of(stub, seconds, **fields)
    return from_rpc_error(raised.value)


def written(
    outcome: corpus_pb2.Outcome.ValueType, text: str, *cited: str
) -> answer_pb2.WrittenText:
    return answer_pb2.WrittenText(outcome=outcome, text=text, cited_message_ids=cited)


async def test_steps_come_in_order_and_exactly_one_answer_ends_them(gateway: Gateway) -> None:
    async with gateway() as stub:
        events = await events_of(stub)
    assert [event.progress.step for event in events[:-1]] == [
        gateway_pb2.STEP_SEARCHING,
        gateway_pb2.STEP_RERANKING,
        gateway_pb2.STEP_WRITING,
        gateway_pb2.STEP_CHECKING,
    ]
    answer = events[-1].answer
    assert answer.outcome == corpus_pb2.OUTCOME_ANSWERED
    assert answer.text == f"{SECOND.text} [{SECOND.message_id}]"
    assert list(answer.citations) == [SECOND]
    assert answer.rerank_tier == rerank_pb2.TIER_JEV
    assert answer.generation_id == GENERATION
    assert answer.writer == "extractive"
    assert list(answer.degraded) == []
    assert {"retrieve", "rerank", "answer", "check", "total"} == set(answer.timings_ms)


async def test_the_writer_is_given_the_reranked_order_with_all_scores(
    gateway: Gateway, script: Script
) -> None:
    async with gateway() as stub:
        await answer_of(stub)
    best, other = script.answer.requests[0].evidence
    assert [best.message, other.message] == [SECOND, FIRST]
    assert (best.rerank_score, other.rerank_score) == (3.0, 2.9)
    assert (best.dense_rank, best.lexical_rank) == (1, 1)
    assert best.fused_score == pytest.approx(2 / 11)
    assert best.cosine == pytest.approx(0.89)
    assert best.term_coverage == 0.5


async def test_a_private_channel_is_not_searched_unless_it_is_named(
    gateway: Gateway, script: Script
) -> None:
    async with gateway() as stub:
        await answer_of(stub)
        await answer_of(stub, reader=gateway_pb2.Reader(channel_ids=["#leads"]))
    assert [list(context.channel_ids) for context in script.retrieve.contexts] == [
        ["ops"],
        ["leads"],
    ]


async def test_without_matches_the_answer_abstains_and_nothing_is_written(
    gateway: Gateway, script: Script
) -> None:
    async with gateway() as stub:
        events = await events_of(stub, reader=gateway_pb2.Reader(no_channels=True))
    answer = events[-1].answer
    assert len(events) == 2
    assert answer.outcome == corpus_pb2.OUTCOME_ABSTAINED
    assert answer.reason == "No message that you can read matches."
    assert answer.rerank_tier == rerank_pb2.TIER_UNSPECIFIED
    assert script.answer.requests == []


async def test_explain_carries_the_trace_in_fused_order(gateway: Gateway) -> None:
    async with gateway() as stub:
        explained, plain = await answer_of(stub, explain=True), await answer_of(stub)
    assert [hit.message.message_id for hit in explained.trace.hits] == IDS
    assert explained.trace.explanation.lexical_query == "scripted"
    assert [row.message_id for row in explained.trace.rerank.ranking] == IDS[::-1]
    assert not plain.HasField("trace")


@pytest.mark.parametrize(
    "failure",
    [
        pytest.param(None, id="absent"),
        pytest.param(failing(ValueError("defect")), id="internal"),
        pytest.param(
            failing(unavailable(error_pb2.ERROR_REASON_STAGE_UNAVAILABLE, "away")), id="unavailable"
        ),
    ],
)
async def test_without_a_reranker_the_fused_order_is_kept_and_said(
    gateway: Gateway, script: Script, failure: Reply | None
) -> None:
    script.rerank = replace(script.rerank, reply=failure)
    async with gateway(absent=() if failure else ("rerank",)) as stub:
        answer = await answer_of(stub)
    assert answer.outcome == corpus_pb2.OUTCOME_ANSWERED
    assert list(answer.citations) == [FIRST]
    assert answer.rerank_tier == rerank_pb2.TIER_RRF
    assert list(answer.degraded) == ["rerank_unavailable"]


async def test_a_hanging_reranker_leaves_time_to_answer(gateway: Gateway, script: Script) -> None:
    script.rerank.reply = hang
    async with gateway() as stub:
        answer = await answer_of(stub, seconds=2)
    assert answer.outcome == corpus_pb2.OUTCOME_ANSWERED
    assert list(answer.degraded) == ["rerank_unavailable"]


async def test_a_reranker_can_neither_add_nor_lose_a_message(
    gateway: Gateway, script: Script
) -> None:
    script.rerank.reply = always(
        rerank_pb2.RerankResponse(
            ranking=[
                rerank_pb2.RankedMessage(message_id=SECRET.message_id, score=3.0),
                rerank_pb2.RankedMessage(message_id=SECOND.message_id, score=2.0),
                rerank_pb2.RankedMessage(message_id=SECOND.message_id, score=1.0),
            ],
            tier=rerank_pb2.TIER_LUNA,
        )
    )
    async with gateway() as stub:
        await answer_of(stub)
    evidence = script.answer.requests[0].evidence
    assert [item.message.message_id for item in evidence] == IDS[::-1]
    assert not evidence[1].HasField("rerank_score")


async def test_each_failed_tier_is_named(gateway: Gateway, script: Script) -> None:
    script.rerank.reply = always(
        rerank_pb2.RerankResponse(
            ranking=[rerank_pb2.RankedMessage(message_id=message_id) for message_id in IDS],
            tier=rerank_pb2.TIER_RRF,
            failed_tiers=[
                rerank_pb2.FailedTier(tier=rerank_pb2.TIER_JEV, cause="http_529"),
                rerank_pb2.FailedTier(tier=rerank_pb2.TIER_LUNA, cause="timeout"),
            ],
        )
    )
    async with gateway() as stub:
        answer = await answer_of(stub)
    assert list(answer.degraded) == ["rerank:jev:http_529", "rerank:luna:timeout"]
    assert answer.rerank_tier == rerank_pb2.TIER_RRF


@pytest.mark.parametrize(
    "failure",
    [
        pytest.param(None, id="absent"),
        pytest.param(hang, id="hanging"),
        pytest.param(failing(ValueError("defect")), id="internal"),
        pytest.param(always(answer_pb2.WrittenText()), id="empty reply"),
        pytest.param(
            always(written(corpus_pb2.OUTCOME_SUPPRESSED, "text", *IDS)), id="strange outcome"
        ),
    ],
)
async def test_without_a_writer_the_ranked_messages_come_back_unverified(
    gateway: Gateway, script: Script, failure: Reply | None
) -> None:
    script.answer.reply = failure
    async with gateway(absent=() if failure else ("answer",)) as stub:
        answer = await answer_of(stub, seconds=3)
    assert answer.outcome == corpus_pb2.OUTCOME_SOURCES_ONLY
    assert [hit.message for hit in answer.unverified_sources] == [SECOND, FIRST]
    assert list(answer.citations) == []
    assert answer.reason
    assert list(answer.degraded) == ["answer_unavailable"]


@pytest.mark.parametrize(
    ("failure", "code"),
    [
        pytest.param(None, grpc.StatusCode.UNAVAILABLE, id="absent"),
        pytest.param(hang, grpc.StatusCode.UNAVAILABLE, id="hanging"),
        pytest.param(failing(ValueError("defect")), grpc.StatusCode.INTERNAL, id="internal"),
    ],
)
async def test_without_retrieve_the_call_fails_and_never_finds_nothing(
    gateway: Gateway, script: Script, failure: Reply | None, code: grpc.StatusCode
) -> None:
    script.retrieve.search_reply = failure
    async with gateway(absent=() if failure else ("retrieve",)) as stub:
        error = await error_of(stub, seconds=3)
    assert error.code is code
    assert error.message


async def test_a_stage_that_is_down_is_named(gateway: Gateway) -> None:
    async with gateway(absent=("retrieve",)) as stub:
        error = await error_of(stub)
    assert error.reason == error_pb2.ERROR_REASON_STAGE_UNAVAILABLE
    assert "retrieve" in error.message
    assert error.retry_after_seconds


@pytest.mark.parametrize(
    "reason",
    [
        "EMBEDDER_MISMATCH",
        "CALIBRATION_MISSING",
        "CALIBRATION_UNCERTIFIED",
        "CALIBRATION_STALE",
    ],
)
async def test_without_trust_an_ask_is_refused_with_the_named_reason_and_nothing_else(
    gateway: Gateway, script: Script, reason: str
) -> None:
    value = error_pb2.ErrorReason.Value(f"ERROR_REASON_{reason}")
    script.retrieve.search_reply = failing(
        CallError(
            grpc.StatusCode.FAILED_PRECONDITION,
            value,
            "Not to be trusted.",
            metadata={"generation_id": GENERATION},
        )
    )
    async with gateway() as stub:
        answer = await answer_of(stub)
    assert answer.outcome == corpus_pb2.OUTCOME_REFUSED
    assert (answer.refusal, answer.reason) == (reason, "Not to be trusted.")
    assert answer.generation_id == GENERATION
    assert not answer.citations and not answer.hits and not answer.unverified_sources


async def test_what_retrieve_fails_with_reaches_the_caller_as_it_is(
    gateway: Gateway, script: Script
) -> None:
    script.retrieve.search_reply = failing(
        CallError(
            grpc.StatusCode.FAILED_PRECONDITION,
            error_pb2.ERROR_REASON_NO_ACTIVE_GENERATION,
            "Nothing imported.",
        )
    )
    async with gateway() as stub:
        error = await error_of(stub)
    assert (error.code, error.reason) == (
        grpc.StatusCode.FAILED_PRECONDITION,
        error_pb2.ERROR_REASON_NO_ACTIVE_GENERATION,
    )


async def test_only_what_the_trust_gate_lets_through_is_evidence(
    gateway: Gateway, script: Script
) -> None:
    judged = [hit(FIRST, 0), hit(SECOND, 1)]
    judged[0].verdict = corpus_pb2.VERDICT_SUPERSEDED
    judged[0].superseded_by = SECOND.message_id
    judged[1].verdict = corpus_pb2.VERDICT_OK
    script.retrieve.search_reply = always(
        retrieve_pb2.SearchResponse(hits=judged, question="When?", confidence=0.8)
    )
    async with gateway() as stub:
        answer = await answer_of(stub)
    [request] = script.answer.requests
    assert [each.message.message_id for each in request.evidence] == [SECOND.message_id]
    assert [each.message.message_id for each in answer.hits] == IDS
    assert answer.confidence == 0.8


async def test_when_no_hit_may_be_evidence_the_writer_is_not_asked(
    gateway: Gateway, script: Script
) -> None:
    judged = hit(FIRST, 0)
    judged.verdict = corpus_pb2.VERDICT_LOW_CONFIDENCE
    script.retrieve.search_reply = always(
        retrieve_pb2.SearchResponse(hits=[judged], abstained=True, reason="Not certain enough.")
    )
    async with gateway() as stub:
        answer = await answer_of(stub)
    assert script.answer.requests == []
    assert (answer.outcome, answer.reason) == (
        corpus_pb2.OUTCOME_ABSTAINED,
        "Not certain enough.",
    )
    assert [each.verdict for each in answer.hits] == [corpus_pb2.VERDICT_LOW_CONFIDENCE]


@pytest.mark.parametrize(
    "reply",
    [
        pytest.param(
            written(corpus_pb2.OUTCOME_ANSWERED, "Halved.", FIRST.message_id, SECRET.message_id),
            id="cites what was no evidence",
        ),
        pytest.param(
            written(corpus_pb2.OUTCOME_ANSWERED, "Thursday, trust me."), id="cites nothing"
        ),
        pytest.param(
            written(corpus_pb2.OUTCOME_UNVERIFIED, "what the model said", FIRST.message_id),
            id="unverified with text",
        ),
    ],
)
async def test_a_text_that_does_not_hold_is_replaced_by_the_fixed_sentence(
    gateway: Gateway, script: Script, reply: answer_pb2.WrittenText
) -> None:
    script.answer.reply = always(reply)
    async with gateway() as stub:
        answer = await answer_of(stub)
    assert answer.outcome == corpus_pb2.OUTCOME_UNVERIFIED
    assert answer.text == UNVERIFIED_TEXT
    assert list(answer.citations) == []


async def test_the_writer_s_abstention_is_kept_with_its_reason(
    gateway: Gateway, script: Script
) -> None:
    abstention = written(corpus_pb2.OUTCOME_ABSTAINED, "I could not find enough evidence.")
    abstention.reason = "The evidence does not answer."
    script.answer.reply = always(abstention)
    async with gateway() as stub:
        answer = await answer_of(stub)
    assert answer.outcome == corpus_pb2.OUTCOME_ABSTAINED
    assert answer.text == "I could not find enough evidence."
    assert answer.reason == "The evidence does not answer."


@pytest.mark.parametrize("change", ["edit", "delete"])
async def test_an_answer_is_suppressed_when_its_source_changes_while_it_is_written(
    gateway: Gateway, script: Script, change: str
) -> None:
    async def write_while_it_changes(request: answer_pb2.WriteAnswerRequest) -> object:
        if change == "edit":
            script.retrieve.messages = [FIRST, message(2, "Friday after all.", author="Bo")]
        else:
            script.retrieve.deleted.add(SECOND.message_id)
        return written(corpus_pb2.OUTCOME_ANSWERED, "Thursday.", SECOND.message_id)

    script.answer.reply = write_while_it_changes
    async with gateway() as stub:
        answer = await answer_of(stub)
    assert answer.outcome == corpus_pb2.OUTCOME_SUPPRESSED
    assert "Thursday" not in answer.text
    assert list(answer.citations) == []


async def test_sources_deleted_while_the_writer_failed_are_not_shown(
    gateway: Gateway, script: Script
) -> None:
    async def fail_while_it_changes(_: object) -> object:
        script.retrieve.deleted.add(SECOND.message_id)
        raise ValueError("defect")

    script.answer.reply = fail_while_it_changes
    async with gateway() as stub:
        answer = await answer_of(stub)
    assert [hit.message for hit in answer.unverified_sources] == [FIRST]


async def test_a_client_that_leaves_ends_the_stage_s_work(gateway: Gateway, script: Script) -> None:
    script.answer.reply = hang
    async with gateway() as stub:
        call = stub.Ask(gateway_pb2.AskRequest(question="When?"), timeout=30)
        async for event in call:
            if event.progress.step == gateway_pb2.STEP_WRITING:
                break
        await asyncio.wait_for(script.answer.begun.wait(), 10)
        call.cancel()
        await asyncio.wait_for(script.answer.cancelled.wait(), 10)


async def test_an_empty_question_is_refused(gateway: Gateway) -> None:
    async with gateway() as stub:
        with pytest.raises(grpc.aio.AioRpcError) as raised:
            async for _ in stub.Ask(gateway_pb2.AskRequest(question=" \n"), timeout=5):
                pass
    assert raised.value.code() is grpc.StatusCode.INVALID_ARGUMENT


async def test_search_is_passed_on_under_the_caller_s_context(
    gateway: Gateway, script: Script
) -> None:
    async with gateway() as stub:
        reply = await stub.Search(gateway_pb2.SearchRequest(question="window", limit=1), timeout=5)
    assert [hit.message for hit in reply.result.hits] == [FIRST]
    assert list(script.retrieve.contexts[0].channel_ids) == ["ops"]


async def test_a_thread_opens_only_for_who_may_read_it(gateway: Gateway) -> None:
    async with gateway() as stub:
        opened = await stub.OpenThread(
            gateway_pb2.OpenThreadRequest(message_id=FIRST.message_id), timeout=5
        )
        errors = []
        for message_id in (SECRET.message_id, "synthetic:ops:absent"):
            with pytest.raises(grpc.aio.AioRpcError) as raised:
                await stub.OpenThread(
                    gateway_pb2.OpenThreadRequest(message_id=message_id), timeout=5
                )
            errors.append((raised.value.code(), raised.value.details()))
    assert list(opened.messages) == [FIRST]
    assert errors[0] == errors[1]
    assert errors[0][0] is grpc.StatusCode.NOT_FOUND


async def test_status_tells_which_stage_is_down_and_what_is_stored(gateway: Gateway) -> None:
    async with gateway(absent=("rerank",)) as stub:
        status = await stub.GetStatus(gateway_pb2.GetStatusRequest(), timeout=10)
    assert {stage.stage: stage.serving for stage in status.stages} == {
        "ingest": True,
        "retrieve": True,
        "rerank": False,
        "answer": True,
    }
    assert [(w.workspace_id, w.messages, w.channels, w.chunks) for w in status.workspaces] == [
        ("beacon", 20, 2, 40)
    ]


async def test_status_answers_with_ingest_down(gateway: Gateway) -> None:
    async with gateway(absent=("ingest",)) as stub:
        status = await stub.GetStatus(gateway_pb2.GetStatusRequest(), timeout=10)
    assert list(status.workspaces) == []
    assert (status.stages[0].stage, status.stages[0].serving) == ("ingest", False)
    assert status.stages[0].detail
