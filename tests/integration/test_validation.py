"""Validation reads back what a generation holds; only what it finds right may be promoted."""

from __future__ import annotations

import pytest

from recall.error.v1 import error_pb2
from recall.ingest.v1 import generations_pb2 as pb
from services.ingest.upkeep import Upkeep
from tests import builders as b
from tests.integration.ingest_fixtures import Ingest, Rows, call_fails
from tests.integration.lifecycle import (
    audited,
    build,
    listed,
    promote,
    read_back,
    ready,
    searched,
    states,
    validate,
)
from tests.waiting import until

THREAD = [b.slack_record(f"message {n} about herring", n, thread_ts=b.ts_of(0)) for n in range(4)]
NOT_READY = error_pb2.ERROR_REASON_GENERATION_NOT_READY


@pytest.fixture
async def built(ingest: Ingest, rows: Rows, upkeep: Upkeep) -> str:
    """A complete generation behind the serving one, not yet validated."""
    await ingest.load(b.slack_import(*THREAD, embedder="local"))
    built = (await build(ingest, upkeep)).generation_id
    rows.embed(built, 1536)
    return built


async def test_a_complete_generation_is_validating_until_a_search_found_its_chunk(
    ingest: Ingest, rows: Rows, built: str
) -> None:
    first = await read_back(ingest, built)
    assert first.generation.state == pb.GENERATION_STATE_VALIDATING
    assert (first.sources, first.chunks, list(first.faults)) == (4, 5, [])
    assert "herring" in first.wanted.question
    assert first.wanted.channel_id == b.GENERAL
    last = await searched(ingest, built, first.wanted)
    assert last.generation.state == pb.GENERATION_STATE_READY
    assert last.generation.HasField("validated_at")
    assert not last.HasField("wanted")
    assert audited(rows)[-1] == ("generation_validated", built)


@pytest.mark.parametrize(
    ("dense", "lexical", "arm"), [(False, True, "vector"), (True, False, "full-text")]
)
async def test_an_arm_that_does_not_find_the_chunk_fails_the_generation_and_nothing_else(
    ingest: Ingest, rows: Rows, upkeep: Upkeep, built: str, dense: bool, lexical: bool, arm: str
) -> None:
    wanted = (await read_back(ingest, built)).wanted
    last = await searched(ingest, built, wanted, dense=dense, lexical=lexical)
    assert last.generation.state == pb.GENERATION_STATE_FAILED
    assert arm in last.generation.failure_reason
    assert list(last.faults) == [last.generation.failure_reason]
    await upkeep.finished()
    assert states(rows) == {"g-1": "active", built: "failed"}
    assert rows.all("SELECT DISTINCT generation_id FROM chunks") == [("g-1",)]


@pytest.mark.parametrize(
    ("damage", "fault"),
    [
        (
            "UPDATE vectors_1536 SET embedding = array_fill(0::real, ARRAY[1536])::vector "
            "WHERE chunk_id = (SELECT min(chunk_id) FROM vectors_1536)",
            "1 chunks have a vector without",
        ),
        (
            "UPDATE chunks SET text = text || '!' WHERE generation_id = 'g-2'",
            "5 chunks have another text",
        ),
    ],
)
async def test_a_damaged_row_fails_the_generation_and_is_named(
    ingest: Ingest, rows: Rows, built: str, damage: str, fault: str
) -> None:
    rows.execute(damage)
    checked = await read_back(ingest, built)
    assert checked.generation.state == pb.GENERATION_STATE_FAILED
    assert fault in checked.generation.failure_reason
    assert not checked.HasField("wanted")
    with call_fails() as errors:
        await read_back(ingest, built)
    assert errors[0].reason == NOT_READY


async def test_a_failure_says_why_in_at_most_500_characters_and_without_text(
    ingest: Ingest, rows: Rows, built: str
) -> None:
    rows.execute("UPDATE chunks SET text = 'x' WHERE generation_id = %s", built)
    rows.execute("UPDATE vectors_1536 SET embedding = array_fill(0::real, ARRAY[1536])::vector")
    reason = (await read_back(ingest, built)).generation.failure_reason
    assert 0 < len(reason) <= 500
    assert "herring" not in reason


async def test_a_chunk_that_changed_under_the_search_is_searched_anew(
    ingest: Ingest, rows: Rows, built: str
) -> None:
    wanted = (await read_back(ingest, built)).wanted
    edit = {"user": "U1", "ts": b.ts_of(60)}
    changed = [
        b.slack_record(f"other words {n}", n, thread_ts=b.ts_of(0), edited=edit) for n in range(4)
    ]
    await ingest.load(b.slack_import(*changed))
    rows.embed(built, 1536)
    again = await searched(ingest, built, wanted, dense=False, lexical=False)
    assert list(again.faults) == []
    assert again.generation.state == pb.GENERATION_STATE_VALIDATING
    assert "other words" in again.wanted.question
    last = await searched(ingest, built, again.wanted)
    assert last.generation.state == pb.GENERATION_STATE_READY


async def test_a_generation_of_nothing_is_ready_at_once(
    ingest: Ingest, rows: Rows, upkeep: Upkeep
) -> None:
    await ingest.load(b.slack_import(embedder="local"))
    built = (await build(ingest, upkeep)).generation_id
    checked = await read_back(ingest, built)
    assert checked.generation.state == pb.GENERATION_STATE_READY
    assert (checked.chunks, checked.HasField("wanted")) == (0, False)


async def test_what_serves_is_checked_and_goes_on_serving(
    ingest: Ingest, rows: Rows, upkeep: Upkeep
) -> None:
    await ingest.load(b.slack_import(*THREAD, embedder="local"))
    rows.embed("g-1", 384)
    assert (await validate(ingest, "g-1")).state == pb.GENERATION_STATE_ACTIVE
    rows.execute("UPDATE chunks SET text = 'x'")
    checked = await read_back(ingest, "g-1")
    assert checked.faults
    assert checked.generation.state == pb.GENERATION_STATE_ACTIVE


async def test_the_traffic_of_the_last_minute_holds_nothing_up_and_older_gaps_do(
    ingest: Ingest, rows: Rows, upkeep: Upkeep
) -> None:
    await ingest.load(b.slack_import(*THREAD, embedder="local"))
    built = await ready(ingest, upkeep, rows)
    await ingest.load(b.slack_import(b.slack_record("just now", 50)))
    assert rows.one("SELECT count(*) FROM vectors_1536 WHERE embedding IS NULL") == 1
    rows.execute("UPDATE vectors_1536 SET written_at = written_at - interval '61 seconds'")
    for call in (validate(ingest, built), promote(ingest, built)):
        with call_fails() as errors:
            await call
        assert errors[0].reason == NOT_READY
        assert "1 chunks have no vector yet" in errors[0].message
    rows.execute("UPDATE vectors_1536 SET written_at = now() WHERE embedding IS NULL")
    rows.execute("UPDATE generations SET filled_at = now() - interval '1 second'")
    assert (await promote(ingest, built)).state == pb.GENERATION_STATE_ACTIVE


async def test_a_build_that_breaks_fails_and_leaves_what_serves(
    ingest: Ingest, rows: Rows, upkeep: Upkeep
) -> None:
    await ingest.load(b.slack_import(*THREAD, embedder="local"))
    rows.execute(
        "CREATE FUNCTION broken() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        "RAISE EXCEPTION 'herring'; END $$"
    )
    rows.execute(
        "CREATE TRIGGER broken BEFORE INSERT ON vectors_1536 FOR EACH ROW EXECUTE FUNCTION broken()"
    )
    request = pb.BuildGenerationRequest(workspace_id="W", embedder="openai")
    built = (await ingest.generations.BuildGeneration(request)).generation.generation_id
    await until(lambda: states(rows)[built] == "failed")
    await upkeep.finished()
    found = (await listed(ingest))[built]
    assert found.state == pb.GENERATION_STATE_FAILED
    assert "RaiseException" in found.failure_reason
    assert "herring" not in found.failure_reason
    assert rows.one("SELECT count(*) FROM chunks WHERE generation_id = %s", built) == 0
    assert states(rows)["g-1"] == "active"
    assert ("generation_failed", built) in audited(rows)
