"""A rejected calibration is kept with its reason, and no search reads it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from typing import LiteralString

import grpc
import psycopg
import pytest

from recall.corpus.v1 import corpus_pb2
from recall.retrieve.v1 import retrieve_pb2
from services.calibration.model import CalibrationModel, digest, to_json
from tests.conftest import Serve
from tests.integration.retrieve_stage import (
    Stub,
    asked,
    local_embedder,
    refusal,
    retrieve_stage,
    seed_four_messages,
)
from tests.integration.seed import Seed

QUESTIONS = ("postgres 28P01", "what is for lunch?", "an elephant on the moon")
CERTIFIED = CalibrationModel("reference", threshold=0.5, cosine_threshold=0.1, cosine_scale=0.05)
# Would turn every hit away.
HOPELESS = CalibrationModel("reference", threshold=0.5, cosine_threshold=2.0, cosine_scale=0.01)


@pytest.fixture
def seed(database_url: str) -> Iterator[Seed]:
    with psycopg.connect(database_url, autocommit=True) as connection:
        yield seed_four_messages(connection)


@pytest.fixture
async def stub(seed: Seed, database_url: str, serve: Serve) -> AsyncIterator[Stub]:
    await seed.embed(local_embedder())
    async with retrieve_stage(database_url, serve) as client:
        yield client


def record(seed: Seed, state: str, model: CalibrationModel) -> None:
    """A calibration of the serving generation, as ingest records it."""
    stored = to_json(model)
    seed.connection.execute(
        "INSERT INTO label_sets (workspace_id, labels_sha256, labels) VALUES (%s, %s, '[]')",
        (seed.workspace_id, state),
    )
    seed.connection.execute(
        "INSERT INTO calibrations (workspace_id, calibration_id, generation_id, rule, state, "
        "reason, model, model_sha256, labels_sha256, pipeline_fingerprint, false_confirm_target, "
        "false_abstain_target, created_at) "
        "SELECT workspace_id, %s, generation_id, 'reference', %s, %s, %s, %s, %s, "
        "pipeline_fingerprint, 0.1, 0.1, clock_timestamp() FROM generations "
        "WHERE generation_id = 'G1'",
        (
            *(f"c-{state}", state, "too few labels" if state == "rejected" else ""),
            *(json.dumps(stored), digest(stored), state),
        ),
    )


async def outcomes(stub: Stub) -> list[retrieve_pb2.SearchResponse]:
    """Every question's whole reply, without how long it took."""
    found = [await stub.Search(asked(question)) for question in QUESTIONS]
    for reply in found:
        reply.timings_ms.clear()
    return found


async def test_without_a_published_one_nothing_changes(stub: Stub, seed: Seed) -> None:
    before = await outcomes(stub)
    record(seed, "rejected", HOPELESS)
    assert await outcomes(stub) == before
    assert [reply.calibration_id for reply in before] == [""] * len(QUESTIONS)
    assert any(reply.hits for reply in before)


async def test_beside_a_published_one_nothing_changes(stub: Stub, seed: Seed) -> None:
    record(seed, "published", CERTIFIED)
    before = await outcomes(stub)
    record(seed, "rejected", HOPELESS)
    assert await outcomes(stub) == before
    assert {reply.calibration_id for reply in before} == {"c-published"}
    verdicts = {hit.verdict for reply in before for hit in reply.hits}
    assert corpus_pb2.VERDICT_OK in verdicts


async def test_where_trust_is_strict_the_rejection_is_the_reason(stub: Stub, seed: Seed) -> None:
    strict = asked(QUESTIONS[0], trust_mode=corpus_pb2.TRUST_MODE_STRICT)
    precondition = grpc.StatusCode.FAILED_PRECONDITION
    assert await refusal(stub.Search(strict)) == (precondition, "CALIBRATION_MISSING")
    record(seed, "rejected", HOPELESS)
    assert await refusal(stub.Search(strict)) == (precondition, "CALIBRATION_UNCERTIFIED")


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE calibrations SET model = jsonb_set(model, '{threshold}', '0.1')",
        "UPDATE calibrations SET pipeline_fingerprint = 'another'",
        "UPDATE generations SET pipeline_fingerprint = 'another'",
        "UPDATE calibrations SET state = 'voided', reason = 'too many errors'",
    ],
)
async def test_what_is_not_true_any_more_is_stale_and_judges_nothing(
    stub: Stub, seed: Seed, change: LiteralString
) -> None:
    record(seed, "published", HOPELESS)
    strict = asked(QUESTIONS[0], trust_mode=corpus_pb2.TRUST_MODE_STRICT)
    assert (await stub.Search(strict)).calibration_id == "c-published"
    seed.connection.execute(change)
    precondition = grpc.StatusCode.FAILED_PRECONDITION
    assert await refusal(stub.Search(strict)) == (precondition, "CALIBRATION_STALE")
    relaxed = await stub.Search(asked(QUESTIONS[0]))
    assert relaxed.calibration_id == ""
    assert {hit.verdict for hit in relaxed.hits} == {corpus_pb2.VERDICT_UNVERIFIED}


async def test_the_calibration_of_another_generation_is_never_read(stub: Stub, seed: Seed) -> None:
    record(seed, "published", HOPELESS)
    seed.connection.execute("UPDATE calibrations SET generation_id = 'G2'")
    strict = asked(QUESTIONS[0], trust_mode=corpus_pb2.TRUST_MODE_STRICT)
    precondition = grpc.StatusCode.FAILED_PRECONDITION
    assert await refusal(stub.Search(strict)) == (precondition, "CALIBRATION_MISSING")
