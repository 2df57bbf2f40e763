"""Promotion, the way back, and what is given up: one transaction each, audited."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from recall.error.v1 import error_pb2
from recall.ingest.v1 import generations_pb2 as pb
from services.ingest.resources import Resources
from services.ingest.service import servicers
from services.ingest.upkeep import Upkeep
from tests import builders as b
from tests.conftest import Serve
from tests.integration.ingest_fixtures import Ingest, Rows, call_fails, stubs
from tests.integration.lifecycle import (
    audited,
    build,
    promote,
    publish_calibration,
    ready,
    roll_back,
    states,
    validate,
)
from tests.integration.test_installations import installed

THREAD = [b.slack_record(f"message {n}", n, thread_ts=b.ts_of(0)) for n in range(4)]
UNCERTIFIED = error_pb2.ERROR_REASON_CALIBRATION_UNCERTIFIED


@pytest.fixture
async def loaded(ingest: Ingest, rows: Rows) -> Ingest:
    """Workspace W with a serving generation g-1."""
    await ingest.load(b.slack_import(*THREAD, embedder="local"))
    rows.embed("g-1", 384)
    return ingest


@pytest.fixture
def production(resources: Resources) -> Resources:
    """The same database under the rules of production."""
    return replace(resources, is_production=True)


def last_details(rows: Rows) -> dict[str, Any]:
    found = rows.all("SELECT details FROM audit_events ORDER BY event_id DESC LIMIT 1")
    details: dict[str, Any] = found[0][0]
    return details


async def test_a_first_import_serves_at_once_and_the_audit_says_uncertified(
    loaded: Ingest, rows: Rows
) -> None:
    assert states(rows) == {"g-1": "active"}
    assert audited(rows) == [("generation_promoted", "g-1")]
    assert last_details(rows) == {
        **{"cause": "first", "uncertified": True},
        **{"replaced": "", "retired": []},
    }


async def test_without_a_calibration_promotion_needs_the_flag_and_is_audited(
    loaded: Ingest, rows: Rows, upkeep: Upkeep
) -> None:
    built = await ready(loaded, upkeep, rows)
    events = audited(rows)
    with call_fails() as errors:
        await promote(loaded, built, uncertified=False)
    assert errors[0].reason == UNCERTIFIED
    assert "--uncertified" in errors[0].message
    assert states(rows) == {"g-1": "active", built: "ready"}
    assert audited(rows) == events
    await promote(loaded, built)
    assert states(rows) == {"g-1": "ready", built: "active"}
    assert audited(rows)[-1] == ("generation_promoted", built)
    details = last_details(rows)
    assert (details["uncertified"], details["replaced"]) == (True, "g-1")
    assert rows.one("SELECT actor FROM audit_events ORDER BY event_id DESC LIMIT 1") == "operator"


async def test_production_refuses_the_uncertified_whatever_the_flag_and_takes_the_certified(
    loaded: Ingest, rows: Rows, upkeep: Upkeep, production: Resources, serve: Serve
) -> None:
    built = await ready(loaded, upkeep, rows)
    async with serve(servicers(production, upkeep)) as peer:
        strict = stubs(peer)
        for standing in ("", "rejected", "voided"):
            if standing:
                publish_calibration(rows, built, standing)
            for uncertified in (False, True):
                with call_fails() as errors:
                    await promote(strict, built, uncertified=uncertified)
                assert errors[0].reason == UNCERTIFIED
                assert "--uncertified" not in errors[0].message
        publish_calibration(rows, "g-1")
        with call_fails() as errors:
            await promote(strict, built)
        assert errors[0].reason == UNCERTIFIED
        publish_calibration(rows, built)
        promoted = await promote(strict, built, uncertified=False)
    assert promoted.state == pb.GENERATION_STATE_ACTIVE
    assert promoted.calibration_status == "certified"
    details = last_details(rows)
    assert (details["uncertified"], details["calibration_id"]) == (False, f"c-{built}-published")


async def test_a_calibration_of_another_pipeline_certifies_nothing(
    loaded: Ingest, rows: Rows, upkeep: Upkeep
) -> None:
    built = await ready(loaded, upkeep, rows)
    publish_calibration(rows, built)
    rows.execute("UPDATE calibrations SET pipeline_fingerprint = 'another'")
    with call_fails() as errors:
        await promote(loaded, built, uncertified=False)
    assert errors[0].reason == UNCERTIFIED
    assert "no longer holds" in errors[0].message


@pytest.mark.parametrize("column", ["model = '{}'", "model_sha256 = 'other'"])
async def test_a_calibration_that_no_search_would_accept_certifies_nothing(
    loaded: Ingest, rows: Rows, upkeep: Upkeep, column: str
) -> None:
    built = await ready(loaded, upkeep, rows)
    publish_calibration(rows, built)
    rows.execute(f"UPDATE calibrations SET {column}")
    with call_fails() as errors:
        await promote(loaded, built, uncertified=False)
    assert errors[0].reason == UNCERTIFIED


async def test_a_first_import_in_production_serves_only_after_its_certification(
    rows: Rows, upkeep: Upkeep, production: Resources, serve: Serve
) -> None:
    async with serve(servicers(production, upkeep)) as peer:
        strict = stubs(peer)
        report = await strict.load(b.slack_import(*THREAD, embedder="local"))
        assert (report.generation_id, report.generation_created) == ("", False)
        assert any("generations validate" in note for note in report.notes)
        again = await strict.load(b.slack_import(b.slack_record("more", 30), embedder="local"))
        assert again.notes == report.notes
        assert states(rows) == {"g-1": "building"}
        rows.embed("g-1", 384)
        await validate(strict, "g-1")
        publish_calibration(rows, "g-1")
        await promote(strict, "g-1", uncertified=False)
    assert states(rows) == {"g-1": "active"}


async def test_an_app_installed_in_production_serves_only_after_its_certification(
    rows: Rows, upkeep: Upkeep, production: Resources, serve: Serve
) -> None:
    async with serve(servicers(production, upkeep)) as peer:
        strict = stubs(peer)
        await installed(strict)
        await installed(strict)
    assert states(rows) == {"g-1": "building"}
    assert audited(rows) == []


async def test_a_rollback_swaps_the_two_and_a_second_one_swaps_them_back(
    loaded: Ingest, rows: Rows, upkeep: Upkeep
) -> None:
    built = await ready(loaded, upkeep, rows)
    await promote(loaded, built)
    back = await roll_back(loaded)
    assert back.generation_id == "g-1"
    assert states(rows) == {"g-1": "active", built: "ready"}
    assert audited(rows)[-1] == ("generation_rolled_back", "g-1")
    assert last_details(rows)["reason"] == "worse answers"
    forth = await roll_back(loaded)
    assert forth.generation_id == built
    assert states(rows) == {"g-1": "ready", built: "active"}


async def test_a_rollback_is_never_refused_for_want_of_a_certificate(
    loaded: Ingest, rows: Rows, upkeep: Upkeep, production: Resources, serve: Serve
) -> None:
    built = await ready(loaded, upkeep, rows)
    publish_calibration(rows, built)
    await promote(loaded, built, uncertified=False)
    async with serve(servicers(production, upkeep)) as peer:
        assert (await roll_back(stubs(peer))).generation_id == "g-1"
    assert last_details(rows)["calibration_status"] == ""


async def test_without_a_predecessor_there_is_no_way_back(
    loaded: Ingest, rows: Rows, upkeep: Upkeep
) -> None:
    await ready(loaded, upkeep, rows)
    for collection in ("", "handbook"):
        with call_fails() as errors:
            await roll_back(loaded, collection)
        assert errors[0].reason == error_pb2.ERROR_REASON_GENERATION_NOT_FOUND
    assert states(rows)["g-1"] == "active"


async def test_an_edit_after_the_promotion_is_in_both_when_it_is_rolled_back(
    loaded: Ingest, rows: Rows, upkeep: Upkeep
) -> None:
    built = await ready(loaded, upkeep, rows)
    await promote(loaded, built)
    await loaded.load(
        b.slack_import(
            b.slack_record("after the promotion", 40),
            {"type": "message", "subtype": "tombstone", "ts": b.ts_of(2)},
        )
    )
    await roll_back(loaded)
    by_generation = dict(
        rows.all("SELECT generation_id, string_agg(text, '|' ORDER BY text) FROM chunks GROUP BY 1")
    )
    assert by_generation["g-1"] == by_generation[built]
    assert "after the promotion" in by_generation["g-1"]
    assert "message 2" not in by_generation["g-1"]


async def test_collecting_leaves_what_serves_the_way_back_and_what_waits(
    loaded: Ingest, rows: Rows, upkeep: Upkeep
) -> None:
    second = await ready(loaded, upkeep, rows)
    await promote(loaded, second)
    third = await ready(loaded, upkeep, rows)
    await promote(loaded, third)
    waiting = await ready(loaded, upkeep, rows)
    unfinished = (await build(loaded, upkeep)).generation_id
    request = pb.CollectGenerationsRequest(workspace_id="W")
    assert not (await loaded.generations.CollectGenerations(request)).generation_ids
    rows.execute("UPDATE generations SET superseded_at = superseded_at - interval '31 minutes'")
    collected = await loaded.generations.CollectGenerations(request)
    assert list(collected.generation_ids) == ["g-1"]
    assert states(rows) == {
        **{"g-1": "retired", second: "ready", third: "active"},
        **{waiting: "ready", unfinished: "building"},
    }
    kept = {row[0] for row in rows.all("SELECT DISTINCT generation_id FROM chunks")}
    assert kept == {second, third, waiting, unfinished}
    assert audited(rows)[-1] == ("generation_retired", "g-1")


async def test_one_that_nobody_waits_for_is_given_up_with_its_vectors(
    loaded: Ingest, rows: Rows, upkeep: Upkeep
) -> None:
    unwanted = await ready(loaded, upkeep, rows)
    assert rows.one("SELECT count(DISTINCT embedder_fingerprint) FROM embedding_cache") == 2
    request = pb.CollectGenerationsRequest(workspace_id="W", given_up_id=unwanted)
    collected = await loaded.generations.CollectGenerations(request)
    assert list(collected.generation_ids) == [unwanted]
    assert states(rows) == {"g-1": "active", unwanted: "failed"}
    assert rows.all("SELECT DISTINCT generation_id FROM chunks") == [("g-1",)]
    kept = rows.all("SELECT DISTINCT embedder_fingerprint FROM embedding_cache")
    assert kept == rows.all(
        "SELECT embedder_fingerprint FROM generations WHERE generation_id = 'g-1'"
    )
    assert audited(rows)[-1] == ("generation_failed", unwanted)


async def test_what_serves_can_not_be_given_up(loaded: Ingest, rows: Rows) -> None:
    request = pb.CollectGenerationsRequest(workspace_id="W", given_up_id="g-1")
    with call_fails() as errors:
        await loaded.generations.CollectGenerations(request)
    assert errors[0].reason == error_pb2.ERROR_REASON_GENERATION_NOT_READY
    assert states(rows) == {"g-1": "active"}


async def test_clearing_forgets_the_vectors_of_texts_that_nothing_holds_any_more(
    loaded: Ingest, rows: Rows, upkeep: Upkeep
) -> None:
    built = await ready(loaded, upkeep, rows)
    await promote(loaded, built)
    rows.execute(
        "UPDATE chunks SET text_sha256 = 'only here' WHERE generation_id = 'g-1' "
        "AND chunk_id = (SELECT min(chunk_id) FROM chunks)"
    )
    rows.execute(
        "INSERT INTO embedding_cache SELECT workspace_id, embedder_fingerprint, "
        "'only here', vector FROM embedding_cache WHERE length(vector) = 4 * 1536 LIMIT 1"
    )
    serving = "SELECT count(*) FROM embedding_cache WHERE length(vector) = 4 * 1536"
    before = rows.one(serving)
    rows.execute("UPDATE generations SET state = 'retired' WHERE generation_id = 'g-1'")
    await loaded.generations.CollectGenerations(pb.CollectGenerationsRequest(workspace_id="W"))
    assert rows.one(serving) == before - 1
    assert rows.all("SELECT 1 FROM embedding_cache WHERE text_sha256 = 'only here'") == []


async def test_a_promotion_changes_its_own_collection_only(
    loaded: Ingest, rows: Rows, upkeep: Upkeep
) -> None:
    for collection in ("handbook", "runbooks"):
        for number, state in enumerate(("active", "ready")):
            rows.execute(
                "INSERT INTO generations (workspace_id, generation_id, source, collection, kind, "
                "state, chunker_version, embedder_fingerprint, width, promoted_at, validated_at) "
                "SELECT 'W', %s, 'document', %s, 'sealed', %s, '1', embedder_fingerprint, 384, "
                "now(), now() FROM generations WHERE generation_id = 'g-1'",
                f"{collection}-{number}",
                collection,
                state,
            )
    await promote(loaded, "handbook-1")
    assert states(rows) == {
        "g-1": "active",
        **{"handbook-0": "ready", "handbook-1": "active"},
        **{"runbooks-0": "active", "runbooks-1": "ready"},
    }
    await roll_back(loaded, "handbook")
    assert states(rows)["handbook-0"] == "active"
    assert json.dumps(states(rows)).count('"active"') == 3
