"""Validation of a sealed generation: what its manifest names is there, whole and found."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from recall.error.v1 import error_pb2
from recall.ingest.v1 import generations_pb2 as pb
from services.ingest.upkeep import Upkeep
from services.runtime.callers import FILE_NAME
from tests.integration.ingest_fixtures import Ingest, Rows, call_fails
from tests.integration.lifecycle import (
    listed,
    promote,
    read_back,
    roll_back,
    searched,
    states,
    validate,
)
from tests.integration.sealed_rows import seal_rows


@pytest.fixture
def sealed(rows: Rows) -> str:
    """A built collection of two documents in workspace W, every vector in place."""
    return seal_rows(
        rows, "handbook", {"travel.md": "Book trains early", "food.md": "Soup at noon"}
    )


async def test_a_whole_collection_passes_and_may_be_promoted(
    ingest: Ingest, rows: Rows, sealed: str
) -> None:
    first = await read_back(ingest, sealed)
    assert (first.sources, first.chunks, list(first.faults)) == (2, 2, [])
    assert first.wanted.channel_id == "handbook"
    last = await searched(ingest, sealed, first.wanted)
    assert last.generation.state == pb.GENERATION_STATE_READY
    assert (last.generation.collection, last.generation.is_sealed) == ("handbook", True)
    assert (await promote(ingest, sealed)).state == pb.GENERATION_STATE_ACTIVE


@pytest.mark.parametrize(
    ("damage", "fault"),
    [
        ("DELETE FROM chunks WHERE chunk_id = 'c0'", "1 pieces of documents have no chunk"),
        ("DELETE FROM source_pieces WHERE ordinal = 0 AND source_uri ~ 'food'", "belong to no"),
        ("DELETE FROM chunk_terms WHERE chunk_id = 'c1'", "missing in the index of an arm: c1"),
        ("DELETE FROM vectors_384 WHERE chunk_id = 'c1'", "missing in the index of an arm: c1"),
        (
            "UPDATE vectors_384 SET embedding = NULL, skipped = 'too long' WHERE chunk_id = 'c0'",
            "1 chunks have no vector because the embedder refused them: c0",
        ),
        ("UPDATE chunks SET text = 'other'", "2 chunks have another text"),
        ("DELETE FROM sources WHERE path = 'food.md'", "another manifest"),
        ("UPDATE sources SET sha256 = 'other' WHERE path = 'food.md'", "another manifest"),
        ("UPDATE sources SET version_id = '2' WHERE path = 'food.md'", "another manifest"),
    ],
)
async def test_what_is_missing_or_changed_fails_the_generation(
    ingest: Ingest, rows: Rows, upkeep: Upkeep, sealed: str, damage: str, fault: str
) -> None:
    rows.execute(damage)
    checked = await read_back(ingest, sealed)
    assert checked.generation.state == pb.GENERATION_STATE_FAILED
    assert fault in checked.generation.failure_reason
    await upkeep.finished()
    assert rows.all("SELECT 1 FROM chunks UNION ALL SELECT 1 FROM sources") == []


async def test_a_source_that_was_erased_meanwhile_is_not_missed(
    ingest: Ingest, rows: Rows, sealed: str
) -> None:
    rows.execute("DELETE FROM chunks WHERE chunk_id = 'c1'")
    rows.execute("DELETE FROM sources WHERE path = 'food.md'")
    rows.execute("UPDATE generations SET corpus_fingerprint = 'less one'")
    assert (await validate(ingest, sealed)).state == pb.GENERATION_STATE_READY


async def test_vectors_that_are_still_to_come_hold_it_up_without_failing_it(
    ingest: Ingest, rows: Rows, sealed: str
) -> None:
    rows.execute("UPDATE vectors_384 SET embedding = NULL WHERE chunk_id = 'c0'")
    with call_fails() as errors:
        await read_back(ingest, sealed)
    assert errors[0].reason == error_pb2.ERROR_REASON_GENERATION_NOT_READY
    assert states(rows) == {sealed: "building"}


async def test_a_collection_is_rolled_back_by_its_name(
    ingest: Ingest, rows: Rows, sealed: str
) -> None:
    await validate(ingest, sealed)
    await promote(ingest, sealed)
    newer = seal_rows(rows, "handbook", {"travel.md": "Book trains late"})
    other = seal_rows(rows, "runbooks", {"restart.md": "Restart the pump"})
    for generation_id in (newer, other):
        await validate(ingest, generation_id)
        await promote(ingest, generation_id)
    assert states(rows) == {sealed: "ready", newer: "active", other: "active"}
    assert (await roll_back(ingest, "handbook")).generation_id == sealed
    assert states(rows) == {sealed: "active", newer: "ready", other: "active"}


async def test_a_collection_that_the_caller_may_not_read_is_not_listed(
    ingest: Ingest, rows: Rows, sealed: str, tmp_path: Path
) -> None:
    other = seal_rows(rows, "runbooks", {"restart.md": "Restart the pump"})
    assert set(await listed(ingest)) == {sealed, other}
    path = tmp_path / "home" / FILE_NAME
    entries = json.loads(path.read_text("utf-8"))
    entries["callers"][0]["channels"] = ["runbooks"]
    path.write_text(json.dumps(entries), "utf-8")
    assert set(await listed(ingest)) == {other}
