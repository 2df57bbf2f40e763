"""An agent changes documents, finds what they declare and records it, all through the tools."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from services.calibration.model import digest, to_json
from services.embedding.registry import Embedders, EmbeddingSettings
from services.ingest import labels
from services.ingest.embedding import fill_vectors
from services.ingest.resources import Resources
from services.ingest.upkeep import Upkeep
from services.runtime import db
from services.runtime.callers import Callers
from tests.conftest import Serve
from tests.integration.agent_door import Door, open_door
from tests.integration.ingest_fixtures import Rows
from tests.integration.test_rejected_calibration import CERTIFIED

OWNERS = """---
facts:
  - {namespace: service, subject: api, predicate: owner, object: Ada}
---
The owner of the api service is Ada. Ask her before a deploy.
"""
NEWER = """---
supersedes: owners
facts:
  - {namespace: service, subject: api, predicate: owner, object: Bo}
---
Since the reorganisation the owner of the api service is Bo.
"""
LUNCH = "Lunch in the canteen is soup on Mondays and pasta on Tuesdays.\n"
FACT = {"namespace": "service", "subject": "api", "predicate": "owner", "object": "Ada"}
QUESTION = "Who is the owner of the api service?"


@pytest.fixture
async def embedders() -> AsyncIterator[Embedders]:
    """Without a key: the local one is the default."""
    made = Embedders(EmbeddingSettings())
    yield made
    await made.aclose()


@pytest.fixture
async def door(
    resources: Resources,
    upkeep: Upkeep,
    retrieve_pool: db.Pool,
    serve: Serve,
    callers: Callers,
    rows: Rows,
    tmp_path: Path,
) -> AsyncIterator[Door]:
    """The door, with an embedding lane behind it."""
    lane = asyncio.create_task(fill(resources, rows))
    async with open_door(resources, upkeep, retrieve_pool, serve, tmp_path / "home") as opened:
        yield opened
    lane.cancel()
    with suppress(asyncio.CancelledError):
        await lane


async def fill(resources: Resources, rows: Rows) -> None:
    """Embed what is being built, as the worker does."""
    while True:
        building = rows.all("SELECT generation_id FROM generations WHERE state = 'building'")
        for (generation_id,) in building:
            await fill_vectors(resources.pool, resources.embedders, "documents", generation_id)
        await asyncio.sleep(0.05)


async def ingest(door: Door, files: dict[str, str], **more: Any) -> dict[str, Any]:
    return await door.call("librarian", "ingest", collection="notes", files=files, **more)


def certify(rows: Rows, generation_id: str) -> None:
    """A published calibration of a generation, measured on two labels."""
    stored = to_json(replace(CERTIFIED, cosine_threshold=0.4))
    text = labels.canonical([labels.Label(QUESTION, True), labels.Label("the moon?", False)])
    rows.execute("INSERT INTO label_sets VALUES ('documents', %s, %s)", labels.digest(text), text)
    rows.execute(
        "INSERT INTO calibrations (workspace_id, calibration_id, generation_id, rule, state, "
        "model, model_sha256, labels_sha256, pipeline_fingerprint, corpus_fingerprint, "
        "false_confirm_target, false_abstain_target) SELECT workspace_id, 'c-1', generation_id, "
        "'reference', 'published', %s, %s, %s, pipeline_fingerprint, corpus_fingerprint, 0.1, 0.1 "
        "FROM generations WHERE generation_id = %s",
        json.dumps(stored), digest(stored), labels.digest(text), generation_id,
    )  # fmt: skip


async def test_changed_documents_are_built_checked_and_served(door: Door) -> None:
    first = await ingest(door, {"owners.md": OWNERS, "lunch.md": LUNCH})
    assert (first["state"], first["read"], first["carried"]) == ("active", 2, 0)
    second = await ingest(door, {"canteen.md": LUNCH}, remove=["lunch.md"])
    assert (second["state"], second["read"], second["carried"]) == ("active", 1, 1)
    found = await door.call(
        "librarian", "search", query="lunch soup", workspace="documents", trust="relaxed"
    )
    uris = {hit["provenance"]["source_uri"] for hit in found["hits"]}
    assert uris == {"file:///notes/canteen.md", "file:///notes/owners.md"}
    assert {hit["provenance"]["generation_id"] for hit in found["hits"]} == {
        second["generation_id"]
    }


async def test_documents_that_are_the_same_build_nothing(door: Door, rows: Rows) -> None:
    first = await ingest(door, {"lunch.md": LUNCH})
    again = await ingest(door, {"lunch.md": LUNCH})
    assert (again["state"], again["generation_id"]) == ("active", first["generation_id"])
    assert rows.one("SELECT count(*) FROM generations") == 1


async def test_what_authors_should_mend_is_told(door: Door) -> None:
    odd = await ingest(door, {"odd.md": "---\nvalid_form: 2026-01-01\n---\nText.\n"})
    assert odd["problems"] == [
        "file:///notes/odd.md:2: `valid_form` is not known; did you mean `valid_from`?"
    ]


async def test_while_the_labels_do_not_certify_the_new_one_the_old_one_serves(
    door: Door, rows: Rows
) -> None:
    first = await ingest(door, {"owners.md": OWNERS})
    certify(rows, first["generation_id"])
    second = await ingest(door, {"lunch.md": LUNCH})
    assert second["state"] == "ready"
    assert second["reason"].startswith("The replayed labels do not certify it: ")
    found = await door.call("librarian", "search", query=QUESTION, workspace="documents")
    assert (found["outcome"], found["generation_id"]) == ("answered", first["generation_id"])


@pytest.fixture
def production(resources: Resources) -> Resources:
    return replace(resources, is_production=True)


async def test_production_keeps_an_uncertified_generation_ready_and_says_why(
    production: Resources,
    upkeep: Upkeep,
    retrieve_pool: db.Pool,
    serve: Serve,
    callers: Callers,
    rows: Rows,
    tmp_path: Path,
) -> None:
    lane = asyncio.create_task(fill(production, rows))
    async with open_door(production, upkeep, retrieve_pool, serve, tmp_path / "home") as opened:
        built = await ingest(opened, {"owners.md": OWNERS})
    lane.cancel()
    await asyncio.gather(lane, return_exceptions=True)
    assert built["state"] == "ready"
    assert "recall calibrate" in built["reason"]
    assert rows.all("SELECT state FROM generations") == [("ready",)]


async def test_a_declared_fact_is_found_recorded_and_listed(door: Door, rows: Rows) -> None:
    built = await ingest(door, {"owners.md": OWNERS, "lunch.md": LUNCH})
    asked = {"query": QUESTION, "workspace": "documents"}
    refused = await door.call("librarian", "search", **asked)
    assert (refused["outcome"], refused["refusal"]) == ("refused", "CALIBRATION_MISSING")
    certify(rows, built["generation_id"])
    found = await door.call("librarian", "search", **asked)
    (card,) = found["evidence_cards"]
    assert card["facts"] == [{**FACT, "context": "", "valid_from": "", "valid_until": ""}]
    claim = {"evidence_card_ids": [card["card_id"]], "workspace": "documents"}
    applied = await door.call("librarian", "apply_fact", **FACT, **claim, request_id="r1")
    assert applied["decision"] == "APPLIED"
    again = await door.call("librarian", "apply_fact", **FACT, **claim, request_id="r2")
    assert (again["decision"], again["event_id"]) == ("DUPLICATE", applied["event_id"])
    other = {**FACT, "object": "Cy"}
    unsupported = await door.call("librarian", "apply_fact", **other, **claim, request_id="r3")
    assert unsupported["decision"] == "UNSUPPORTED_CLAIM"
    listed = await door.call("librarian", "current_facts", workspace="documents")
    assert [(fact["object"], fact["actor"]) for fact in listed["facts"]] == [("Ada", "librarian")]


async def test_a_fact_whose_generation_went_is_refused_and_its_successor_replaces_it(
    door: Door, rows: Rows
) -> None:
    first = await ingest(door, {"owners.md": OWNERS})
    certify(rows, first["generation_id"])
    asked = {"query": QUESTION, "workspace": "documents"}
    (old,) = (await door.call("librarian", "search", **asked))["evidence_cards"]
    claim = {"evidence_card_ids": [old["card_id"]], "workspace": "documents"}
    await door.call("librarian", "apply_fact", **FACT, **claim, request_id="r1")
    rows.execute("UPDATE calibrations SET state = 'superseded'")
    second = await ingest(door, {"newer.md": NEWER})
    assert second["state"] == "active"
    late = await door.call("librarian", "apply_fact", **FACT, **claim, request_id="r2")
    assert late["decision"] == "GENERATION_MISMATCH"
    rows.execute("DELETE FROM calibrations")
    rows.execute("DELETE FROM label_sets")
    certify(rows, second["generation_id"])
    (new,) = (await door.call("librarian", "search", **asked))["evidence_cards"]
    newer = {**FACT, "object": "Bo", "evidence_card_ids": [new["card_id"]]}
    applied = await door.call(
        "librarian", "apply_fact", **newer, workspace="documents", request_id="r3"
    )
    assert (applied["decision"], len(applied["superseded_event_ids"])) == ("APPLIED", 1)
    listed = await door.call("librarian", "current_facts", workspace="documents")
    assert [fact["object"] for fact in listed["facts"]] == ["Bo"]


@pytest.mark.parametrize(
    ("agent", "arguments", "said"),
    [
        ("reader", {"collection": "notes", "files": {"a.md": "a"}}, "may only read"),
        ("librarian", {"collection": "other", "files": {"a.md": "a"}}, "may not read"),
        ("writer", {"collection": "notes", "files": {"a.md": "a"}}, "may not read"),
        ("librarian", {"collection": "notes", "files": {"../a.md": "a"}}, "must be relative"),
        ("librarian", {"collection": "notes", "files": {}}, "at least one document"),
        (
            "librarian",
            {"collection": "notes", "files": {"a.md": "a"}, "remove": ["b.md"]},
            "which the collection does not hold",
        ),
    ],
)
async def test_what_may_not_be_changed_is_refused_with_the_reason(
    door: Door, rows: Rows, agent: str, arguments: dict[str, Any], said: str
) -> None:
    refused = await door.call(agent, "ingest", **arguments)
    assert said in refused["error"]
    assert rows.one("SELECT count(*) FROM generations") == 0
