"""Validation through gateway: ingest reads back, retrieve searches, ingest decides."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TypeAlias

import grpc
import pytest

from recall.gateway.v1 import admin_pb2, admin_pb2_grpc
from recall.ingest.v1 import generations_pb2 as pb
from services.gateway.admin_service import ADMIN_SERVICE_NAME, AdminService
from services.gateway.clients import Stages
from services.gateway.directory import Directory
from services.ingest.embedding import fill_vectors
from services.ingest.resources import Resources
from services.ingest.service import servicers as ingest_servicers
from services.ingest.upkeep import Upkeep
from services.runtime import db
from services.runtime.callers import FILE_NAME
from services.runtime.server import Servicers
from tests import builders as b
from tests.conftest import Serve
from tests.integration import retrieve_stage
from tests.integration.ingest_fixtures import Ingest, Rows, call_fails
from tests.integration.lifecycle import build

Admin: TypeAlias = "admin_pb2_grpc.AdminServiceAsyncStub"

COPY = "Weekly reminder: please fill in the rota for the harbour pumps before Friday noon"


@pytest.fixture
async def admin(
    resources: Resources, upkeep: Upkeep, retrieve_pool: db.Pool, serve: Serve
) -> AsyncIterator[Admin]:
    """AdminService on a running ingest and a running retrieve."""
    async with (
        serve(ingest_servicers(resources, upkeep)) as ingest,
        serve(retrieve_stage.servicers(retrieve_pool)) as retrieve,
    ):
        stages = Stages(ingest, retrieve, rerank=retrieve, answer=retrieve)
        served = Servicers(
            lambda server: admin_pb2_grpc.add_AdminServiceServicer_to_server(
                AdminService(stages, Directory(stages, time.monotonic)), server
            ),
            (ADMIN_SERVICE_NAME,),
            lambda: db.can_read(retrieve_pool),
        )
        async with serve(served) as peer:
            yield admin_pb2_grpc.AdminServiceStub(peer.channel())


@pytest.fixture
async def built(ingest: Ingest, resources: Resources, upkeep: Upkeep) -> str:
    """A generation with real vectors, full of copies of one long text."""
    copies = [b.slack_record(COPY, number) for number in range(40)]
    await ingest.load(b.slack_import(*copies, b.slack_record("lunch?", 50), embedder="local"))
    built = (await build(ingest, upkeep, "local")).generation_id
    await fill_vectors(resources.pool, resources.embedders, "W", built)
    return built


async def validate(admin: Admin, generation_id: str) -> pb.ValidateGenerationResponse:
    request = admin_pb2.ValidateGenerationRequest(workspace_id="W", generation_id=generation_id)
    return (await admin.ValidateGeneration(request)).result


async def test_a_good_generation_is_ready_after_one_call(
    admin: Admin, rows: Rows, built: str
) -> None:
    result = await validate(admin, built)
    assert list(result.faults) == []
    assert result.generation.state == pb.GENERATION_STATE_READY
    summary = rows.one("SELECT validation FROM generations WHERE generation_id = %s", built)
    assert summary == {"sources": 41, "chunks": 41}
    actor = "SELECT actor FROM audit_events WHERE kind = 'generation_validated'"
    assert rows.all(actor) == [("operator",)]


@pytest.mark.parametrize(
    ("damage", "arm"),
    [
        ("UPDATE chunk_terms SET terms = '' WHERE generation_id = %s", "full-text"),
        (
            "UPDATE vectors_384 SET embedding = (SELECT array_agg(-x)::vector "
            "FROM unnest(embedding::real[]) AS x) WHERE generation_id = %s",
            "vector",
        ),
    ],
)
async def test_an_arm_whose_index_is_wrong_is_found_out(
    admin: Admin, rows: Rows, built: str, damage: str, arm: str
) -> None:
    rows.execute(damage, built)
    result = await validate(admin, built)
    assert result.generation.state == pb.GENERATION_STATE_FAILED
    (fault,) = result.faults
    assert f"The {arm} arm does not return chunk" in fault


async def test_only_a_caller_of_every_channel_may_validate(
    admin: Admin, built: str, tmp_path: Path
) -> None:
    path = tmp_path / "home" / FILE_NAME
    entries = json.loads(path.read_text("utf-8"))
    entries["callers"][0]["channels"] = [b.GENERAL]
    path.write_text(json.dumps(entries), "utf-8")
    with call_fails() as errors:
        await validate(admin, built)
    assert errors[0].code == grpc.StatusCode.PERMISSION_DENIED
