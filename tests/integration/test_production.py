"""Production from an empty database on: nothing serves until a calibration certifies it."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import pytest

from recall.corpus.v1 import corpus_pb2
from recall.error.v1 import error_pb2
from recall.gateway.v1 import admin_pb2, admin_pb2_grpc
from recall.ingest.v1 import generations_pb2 as pb
from recall.retrieve.v1 import retrieve_pb2, retrieve_pb2_grpc
from services.gateway.admin_service import ADMIN_SERVICE_NAME, AdminService
from services.gateway.clients import Stages
from services.gateway.directory import Directory
from services.ingest.embedding import fill_vectors
from services.ingest.resources import Resources
from services.ingest.service import servicers as ingest_servicers
from services.ingest.upkeep import Upkeep
from services.runtime import db
from services.runtime.server import Servicers
from tests import builders as b
from tests.conftest import Serve
from tests.integration import retrieve_stage
from tests.integration.ingest_fixtures import Ingest, call_fails, stubs
from tests.integration.lifecycle import promote

Admin: TypeAlias = "admin_pb2_grpc.AdminServiceAsyncStub"

PLACES = ("Bergen", "Cadiz", "Dover", "Esbjerg", "Faro", "Genoa", "Haifa")
THINGS = ("crane", "pump", "ferry", "beacon", "winch")
ABSENT = ("payroll", "wedding", "piano", "vaccine", "algebra")
SUBJECTS = ("Peru", "Nepal", "Samoa", "Chad", "Laos", "Fiji", "Togo")


@dataclass(frozen=True)
class Production:
    """Stubs of the three stages under the rules of production."""

    ingest: Ingest
    retrieve: retrieve_stage.Stub
    admin: Admin


@pytest.fixture
async def production(
    resources: Resources, upkeep: Upkeep, retrieve_pool: db.Pool, serve: Serve
) -> AsyncIterator[Production]:
    """The three stages, running."""
    strict = replace(resources, is_production=True)
    async with (
        serve(ingest_servicers(strict, upkeep)) as ingest,
        serve(retrieve_stage.servicers(retrieve_pool)) as retrieve,
    ):
        stages = Stages(ingest, retrieve, rerank=retrieve, answer=retrieve)
        service = AdminService(stages, Directory(stages, time.monotonic))
        served = Servicers(
            lambda server: admin_pb2_grpc.add_AdminServiceServicer_to_server(service, server),
            (ADMIN_SERVICE_NAME,),
            lambda: db.can_read(retrieve_pool),
        )
        async with serve(served) as peer:
            yield Production(
                stubs(ingest),
                retrieve_pb2_grpc.RetrieveServiceStub(retrieve.channel()),
                admin_pb2_grpc.AdminServiceStub(peer.channel()),
            )


def labels(count: int) -> list[pb.Label]:
    """As many answerable as unanswerable questions, far apart from each other."""
    facts = [(place, thing) for place in PLACES for thing in THINGS]
    answerable = [
        pb.Label(
            question=f"Who repairs the {thing} of {place}?",
            answerable=True,
            relevant_ids=[b.message_id(number)],
        )
        for number, (place, thing) in enumerate(facts)
    ]
    unanswerable = [
        pb.Label(question=f"What does the {topic} in {subject} cost?", answerable=False)
        for subject in SUBJECTS
        for topic in ABSENT
    ]
    return [*answerable[:count], *unanswerable[:count]]


async def calibrate(stage: Production, given: Sequence[pb.Label]) -> pb.Calibration:
    request = admin_pb2.CalibrateGenerationRequest(
        workspace_id="W",
        generation_id="g-1",
        source=corpus_pb2.SOURCE_SLACK,
        labels=given,
    )
    events = [event async for event in stage.admin.CalibrateGeneration(request)]
    assert events[-1].HasField("calibration")
    return events[-1].calibration


async def search(stage: Production) -> retrieve_pb2.SearchResponse:
    request = retrieve_pb2.SearchRequest(
        context=corpus_pb2.QueryContext(
            source=corpus_pb2.SOURCE_SLACK, workspace_id="W", channel_ids=[b.GENERAL]
        ),
        question="Who repairs the pump of Cadiz?",
    )
    return await stage.retrieve.Search(request)


async def refused(stage: Production) -> None:
    """Neither asked plainly nor with the flag is the generation promoted, and nothing serves."""
    for uncertified in (False, True):
        with call_fails() as errors:
            await promote(stage.ingest, "g-1", uncertified=uncertified)
        assert errors[0].reason == error_pb2.ERROR_REASON_CALIBRATION_UNCERTIFIED
    with call_fails() as errors:
        await search(stage)
    assert errors[0].reason == error_pb2.ERROR_REASON_NO_ACTIVE_GENERATION


async def test_what_is_not_certified_never_serves_and_what_is_does(
    production: Production, resources: Resources
) -> None:
    facts = [
        b.slack_record(f"Ines from Halden repairs the {thing} of {place} on Mondays.", number)
        for number, (place, thing) in enumerate((p, t) for p in PLACES for t in THINGS)
    ]
    await production.ingest.load(b.slack_import(*facts, embedder="local"))
    await fill_vectors(resources.pool, resources.embedders, "W", "g-1")
    validation = admin_pb2.ValidateGenerationRequest(workspace_id="W", generation_id="g-1")
    result = (await production.admin.ValidateGeneration(validation)).result
    assert result.generation.state == pb.GENERATION_STATE_READY
    await refused(production)

    rejected = await calibrate(production, labels(5))
    assert rejected.state == "rejected"
    assert rejected.more_answerable_needed > 0
    await refused(production)

    certified = await calibrate(production, labels(35))
    assert (certified.state, certified.reason) == ("published", "")
    promoted = await promote(production.ingest, "g-1", uncertified=False)
    assert promoted.state == pb.GENERATION_STATE_ACTIVE
    assert promoted.calibration_status == "certified"
    found = await search(production)
    assert found.calibration_id == certified.calibration_id
    assert found.hits[0].verdict == corpus_pb2.VERDICT_OK
    assert "pump of Cadiz" in found.hits[0].message.text
