"""The life of generations over gRPC, shortly, for the tests of it."""

from __future__ import annotations

import json

from recall.ingest.v1 import generations_pb2
from services.calibration.model import CalibrationModel, digest, to_json
from services.ingest.upkeep import Upkeep
from tests.integration.ingest_fixtures import Ingest, Rows

MODEL = to_json(CalibrationModel("logistic", threshold=0.5))


async def build(
    ingest: Ingest, upkeep: Upkeep, embedder: str = "openai"
) -> generations_pb2.Generation:
    """A generation behind the serving one, its rows written."""
    request = generations_pb2.BuildGenerationRequest(workspace_id="W", embedder=embedder)
    reply = await ingest.generations.BuildGeneration(request)
    await upkeep.finished()
    return reply.generation


async def read_back(
    ingest: Ingest, generation_id: str
) -> generations_pb2.ValidateGenerationResponse:
    """The first call of a validation."""
    request = generations_pb2.ValidateGenerationRequest(
        workspace_id="W", generation_id=generation_id
    )
    return await ingest.generations.ValidateGeneration(request)


async def searched(
    ingest: Ingest,
    generation_id: str,
    wanted: generations_pb2.SmokeSearch,
    *,
    dense: bool = True,
    lexical: bool = True,
) -> generations_pb2.ValidateGenerationResponse:
    """The second call, with what a search for the wanted chunk found."""
    found = generations_pb2.SmokeSearch(found_dense=dense, found_lexical=lexical)
    found.MergeFrom(wanted)
    request = generations_pb2.ValidateGenerationRequest(
        workspace_id="W", generation_id=generation_id, smoke_search=found
    )
    return await ingest.generations.ValidateGeneration(request)


async def validate(ingest: Ingest, generation_id: str) -> generations_pb2.Generation:
    """Both calls, as if a search had found the wanted chunk."""
    first = await read_back(ingest, generation_id)
    return (await searched(ingest, generation_id, first.wanted)).generation


async def promote(
    ingest: Ingest, generation_id: str, *, uncertified: bool = True
) -> generations_pb2.Generation:
    """Promote, by default without a certified calibration."""
    request = generations_pb2.PromoteGenerationRequest(
        workspace_id="W", generation_id=generation_id, uncertified=uncertified
    )
    return (await ingest.generations.PromoteGeneration(request)).generation


async def roll_back(ingest: Ingest, collection: str = "") -> generations_pb2.Generation:
    """Go back to what served before."""
    request = generations_pb2.RollbackGenerationRequest(
        workspace_id="W", collection=collection, reason="worse answers"
    )
    return (await ingest.generations.RollbackGeneration(request)).generation


async def ready(ingest: Ingest, upkeep: Upkeep, rows: Rows, embedder: str = "openai") -> str:
    """Id of a generation that was built, embedded and validated."""
    built = (await build(ingest, upkeep, embedder)).generation_id
    rows.embed(built, 1536 if embedder == "openai" else 384)
    await validate(ingest, built)
    return built


async def listed(ingest: Ingest) -> dict[str, generations_pb2.Generation]:
    """The workspace's generations by id."""
    request = generations_pb2.ListGenerationsRequest(workspace_id="W")
    reply = await ingest.generations.ListGenerations(request)
    return {generation.generation_id: generation for generation in reply.generations}


def states(rows: Rows) -> dict[str, str]:
    """State by generation id, as it is stored."""
    return dict(
        (row[0], row[1]) for row in rows.all("SELECT generation_id, state FROM generations")
    )


def audited(rows: Rows) -> list[tuple[str, str]]:
    """Kind and generation of every audit event, oldest first."""
    found = rows.all("SELECT kind, generation_id FROM audit_events ORDER BY event_id")
    return [(row[0], row[1]) for row in found]


def publish_calibration(rows: Rows, generation_id: str, state: str = "published") -> None:
    """A calibration of a generation, as it would be recorded."""
    labels = "l" + generation_id + state
    rows.execute("INSERT INTO label_sets VALUES ('W', %s, '[]')", labels)
    rows.execute(
        "INSERT INTO calibrations (workspace_id, calibration_id, generation_id, rule, state, "
        "reason, model, model_sha256, labels_sha256, pipeline_fingerprint, corpus_fingerprint, "
        "false_confirm_target, false_abstain_target) "
        "SELECT 'W', %s, generation_id, 'logistic', %s, %s, %s, %s, %s, pipeline_fingerprint, "
        "corpus_fingerprint, 0.1, 0.1 FROM generations WHERE generation_id = %s",
        f"c-{generation_id}-{state}",
        state,
        "too few labels" if state in ("rejected", "voided") else "",
        json.dumps(MODEL),
        digest(MODEL),
        labels,
        generation_id,
    )
