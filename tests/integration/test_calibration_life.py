"""A calibration over its life: published, replayed when it is due, voided, carried to no other."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from recall.corpus.v1 import corpus_pb2
from recall.error.v1 import error_pb2
from recall.gateway.v1 import admin_pb2
from recall.ingest.v1 import generations_pb2 as pb
from recall.ingest.v1 import slack_pb2
from recall.retrieve.v1 import retrieve_pb2
from services.gateway.calibrate_generation import CALIBRATE_SECONDS, calibrate_generation
from services.gateway.clients import Stages
from services.gateway.deadline import deadline_in
from services.gateway.replay_calibrations import replay_due
from services.ingest.embedding import fill_vectors
from services.ingest.resources import Resources
from services.ingest.service import servicers as ingest_servicers
from services.ingest.upkeep import Upkeep
from services.runtime import db
from services.runtime.errors import CallError
from tests import builders as b
from tests.conftest import Serve
from tests.integration import retrieve_stage
from tests.integration.ingest_fixtures import Rows, call_fails

PLACES = ("Bergen", "Cadiz", "Dover", "Esbjerg", "Faro", "Genoa", "Haifa")
THINGS = ("crane", "pump", "ferry", "beacon", "winch")
ABSENT = ("payroll", "wedding", "piano", "vaccine", "algebra")
SUBJECTS = ("Peru", "Nepal", "Samoa", "Chad", "Laos", "Fiji", "Togo")
FACTS = tuple((place, thing) for place in PLACES for thing in THINGS)
QUESTION = "Who repairs the pump of Cadiz?"


@pytest.fixture
async def stages(
    resources: Resources, upkeep: Upkeep, retrieve_pool: db.Pool, serve: Serve
) -> AsyncIterator[Stages]:
    """Ingest and retrieve, with 35 facts imported, embedded and served."""
    async with (
        serve(ingest_servicers(resources, upkeep)) as ingest,
        serve(retrieve_stage.servicers(retrieve_pool)) as retrieve,
    ):
        running = Stages(ingest, retrieve, rerank=retrieve, answer=retrieve)
        records = [
            b.slack_record(f"Ines from Halden repairs the {thing} of {place} on Mondays.", number)
            for number, (place, thing) in enumerate(FACTS)
        ]
        await load(running, records)
        await fill_vectors(resources.pool, resources.embedders, "W", "g-1")
        yield running


async def load(stages: Stages, records: Sequence[b.Record]) -> None:
    requests = b.as_stream(b.slack_import(*records, embedder="local"))
    async for _ in stages.ingester.ImportMessages(requests):
        pass


def labels(count: int) -> list[pb.Label]:
    """As many answerable as unanswerable questions, far apart from each other."""
    answerable = [
        pb.Label(
            question=f"Who repairs the {thing} of {place}?",
            answerable=True,
            relevant_ids=[b.message_id(number)],
        )
        for number, (place, thing) in enumerate(FACTS)
    ]
    unanswerable = [
        pb.Label(question=f"What does the {topic} in {subject} cost?", answerable=False)
        for subject in SUBJECTS
        for topic in ABSENT
    ]
    return [*answerable[:count], *unanswerable[:count]]


async def calibrated(stages: Stages, cause: str = "", **given: Any) -> pb.Calibration:
    """The calibration of one call; raises CallError as it does."""
    request = admin_pb2.CalibrateGenerationRequest(
        workspace_id="W", source=corpus_pb2.SOURCE_SLACK, **given
    )
    deadline = deadline_in(time.monotonic, CALIBRATE_SECONDS)
    events = [e async for e in calibrate_generation(request, cause, stages, deadline)]
    assert isinstance(events[-1], pb.Calibration)
    return events[-1]


async def listed(stages: Stages) -> list[pb.Calibration]:
    request = pb.ListCalibrationsRequest(workspace_id="W")
    return list((await stages.generations.ListCalibrations(request)).calibrations)


async def due(stages: Stages) -> list[str]:
    """Why what is due is due."""
    reply = await stages.generations.ListDueReplays(pb.ListDueReplaysRequest())
    return [each.cause for each in reply.replays]


async def search(
    stages: Stages, mode: corpus_pb2.TrustMode.ValueType = corpus_pb2.TRUST_MODE_STRICT
) -> retrieve_pb2.SearchResponse:
    request = retrieve_pb2.SearchRequest(
        context=corpus_pb2.QueryContext(
            source=corpus_pb2.SOURCE_SLACK, workspace_id="W", channel_ids=[b.GENERAL]
        ),
        question=QUESTION,
        trust_mode=mode,
    )
    return await stages.retriever.Search(request)


async def set_to(stages: Stages, **given: Any) -> slack_pb2.Settings:
    request = slack_pb2.UpdateSettingsRequest(
        workspace_id="W", settings=slack_pb2.Settings(**given)
    )
    return (await stages.settings.UpdateSettings(request)).settings


async def test_a_threshold_is_measured_again_when_it_is_due_and_voided_when_it_fails(
    stages: Stages, rows: Rows
) -> None:
    made = await calibrated(stages, labels=labels(35))
    assert (made.state, made.reason) == ("published", "")
    assert await due(stages) == []

    rows.execute("UPDATE calibrations SET replay_at = now()")
    assert await due(stages) == ["daily"]
    assert await replay_due(stages) == 1
    assert await due(stages) == []

    # A label whose one answer was erased says nothing any more; the others are measured at once.
    rows.execute(
        "INSERT INTO tombstones (workspace_id, message_id) VALUES ('W', %s)", b.message_id(34)
    )
    assert await due(stages) == ["erasure"]
    assert (await search(stages)).calibration_id == made.calibration_id
    assert await replay_due(stages) == 1

    more = [b.slack_record(f"Number {n} of another list.", 100 + n) for n in range(12)]
    await load(stages, more)
    assert await due(stages) == ["corpus_changed"]
    assert await replay_due(stages) == 1
    assert await due(stages) == []

    [now] = await listed(stages)
    assert now.state == "published"
    assert [(each.cause, each.answerable) for each in now.replays] == [
        ("calibrate", 35),
        ("daily", 35),
        ("erasure", 34),
        ("corpus_changed", 34),
    ]
    assert all(0 < each.false_abstain_bound <= 0.1 for each in now.replays)

    # No error in 34 shows no more than 0.084.
    await set_to(stages, false_abstain_target=0.05)
    assert await due(stages) == ["targets"]
    assert await replay_due(stages) == 1
    [voided] = await listed(stages)
    assert (voided.state, voided.replays[-1].cause) == ("voided", "targets")
    assert "0.050" in voided.reason
    assert await due(stages) == []
    with call_fails() as errors:
        await search(stages)
    assert errors[0].reason == error_pb2.ERROR_REASON_CALIBRATION_STALE
    relaxed = await search(stages, corpus_pb2.TRUST_MODE_RELAXED)
    assert relaxed.calibration_id == ""
    assert {hit.verdict for hit in relaxed.hits} == {corpus_pb2.VERDICT_UNVERIFIED}


async def test_a_newer_calibration_takes_the_place_of_the_one_before(
    stages: Stages, rows: Rows
) -> None:
    few = await calibrated(stages, labels=labels(19), rule=pb.CALIBRATION_RULE_REFERENCE)
    assert few.state == "rejected"
    assert (few.more_answerable_needed, few.more_unanswerable_needed) == (1, 1)

    # Perfect samples of 20: the described rule takes them, the default one does not.
    described = await calibrated(stages, labels=labels(20), rule=pb.CALIBRATION_RULE_REFERENCE)
    assert described.state == "published"
    fitted = await calibrated(stages, labels=labels(20))
    assert fitted.state == "rejected"
    assert fitted.more_answerable_needed == fitted.more_unanswerable_needed == 10
    found = await search(stages)
    assert found.calibration_id == described.calibration_id

    judge(rows, labels(35))
    judged = await calibrated(stages, from_feedback=True)
    assert judged.state == "published"
    assert (judged.replays[0].answerable, judged.replays[0].unanswerable) == (35, 35)
    assert (await search(stages)).calibration_id == judged.calibration_id
    states = {each.calibration_id: each.state for each in await listed(stages)}
    assert states[described.calibration_id] == "superseded"


async def test_a_rebuilt_generation_takes_the_threshold_over_by_replaying_its_labels(
    stages: Stages, upkeep: Upkeep, resources: Resources
) -> None:
    made = await calibrated(stages, labels=labels(30), rule=pb.CALIBRATION_RULE_REFERENCE)
    build = pb.BuildGenerationRequest(workspace_id="W", embedder="local")
    rebuilt = (await stages.generations.BuildGeneration(build)).generation.generation_id
    await upkeep.finished()
    await fill_vectors(resources.pool, resources.embedders, "W", rebuilt)
    read_back = pb.ValidateGenerationRequest(workspace_id="W", generation_id=rebuilt)
    await stages.generations.ValidateGeneration(read_back)

    carried = await calibrated(
        stages, generation_id=rebuilt, replayed_calibration_id=made.calibration_id
    )
    assert (carried.state, carried.generation_id) == ("published", rebuilt)
    assert (carried.rule, carried.threshold) == (made.rule, made.threshold)
    assert [each.cause for each in carried.replays] == ["rebuilt"]
    assert (carried.replays[0].answerable, carried.replays[0].unanswerable) == (30, 30)
    assert {each.state for each in await listed(stages)} == {"published"}
    assert (await search(stages)).calibration_id == made.calibration_id


def judge(rows: Rows, judged: Sequence[pb.Label]) -> None:
    """Judgements of answers, as ingest keeps them."""
    for number, label in enumerate(judged):
        rows.execute(
            "INSERT INTO feedback (workspace_id, delivery_id, person_id, is_helpful, question) "
            "VALUES ('W', %s, 'U1', %s, %s)",
            str(number),
            label.answerable,
            label.question,
        )


@pytest.mark.parametrize(
    ("given", "reason", "named"),
    [
        ({}, error_pb2.ERROR_REASON_INVALID_REQUEST, "labels: "),
        ({"from_feedback": True}, error_pb2.ERROR_REASON_INVALID_REQUEST, "from_feedback: "),
        (
            {"labels": labels(1), "generation_id": "g-9"},
            error_pb2.ERROR_REASON_GENERATION_NOT_FOUND,
            "",
        ),
        ({"labels": [*labels(4), labels(1)[0]]}, error_pb2.ERROR_REASON_INVALID_REQUEST, "labels"),
        ({"labels": labels(2)}, error_pb2.ERROR_REASON_INVALID_REQUEST, "samples"),
    ],
)
async def test_what_can_not_be_measured_is_refused_and_named(
    stages: Stages, given: dict[str, Any], reason: int, named: str
) -> None:
    with pytest.raises(CallError) as raised:
        await calibrated(stages, **given)
    assert raised.value.reason == reason
    assert raised.value.message.startswith(named)
    assert await listed(stages) == []


async def test_a_workspace_sets_its_trust(stages: Stages) -> None:
    unset = corpus_pb2.TRUST_MODE_UNSPECIFIED
    assert (await search(stages, unset)).hits
    found = await set_to(stages, trust_mode=corpus_pb2.TRUST_MODE_STRICT)
    assert found.trust_mode == corpus_pb2.TRUST_MODE_STRICT
    with call_fails() as errors:
        await search(stages, unset)
    assert errors[0].reason == error_pb2.ERROR_REASON_CALIBRATION_MISSING
    assert (await search(stages, corpus_pb2.TRUST_MODE_RELAXED)).hits
    found = await set_to(stages, false_confirm_target=0.2)
    assert found.trust_mode == corpus_pb2.TRUST_MODE_STRICT
    found = await set_to(stages, trust_mode=unset, false_confirm_target=0)
    assert not found.HasField("trust_mode") and not found.HasField("false_confirm_target")
    assert (await search(stages, unset)).hits
