"""Agents: the official client against the door, in front of real ingest and retrieve."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest

from services.ingest.resources import Resources
from services.ingest.upkeep import Upkeep
from services.runtime import db
from services.runtime.callers import Callers
from tests.conftest import Serve
from tests.integration.agent_door import Door, open_door
from tests.integration.retrieve_stage import FIX, local_embedder, seed_four_messages
from tests.integration.seed import Seed
from tests.integration.test_rejected_calibration import CERTIFIED, record

QUESTION = "Local Postgres fails with 28P01, what fixed the password failure?"
ABSENT = "an elephant on the moon"
TOOLS = {"recall_search", "recall_ask", "recall_apply_fact", "recall_current_facts",
         "recall_ingest", "recall_status"}  # fmt: skip
FACT = {
    "namespace": "service", "subject": "api", "predicate": "owner", "object": "Ada",
    "evidence_card_ids": ["card-1"], "request_id": "r1",
}  # fmt: skip


@pytest.fixture
def seed(database_url: str) -> Iterator[Seed]:
    with psycopg.connect(database_url, autocommit=True) as connection:
        Seed(connection, workspace_id="T2", generation_id="G2").workspace()
        yield seed_four_messages(connection)


@pytest.fixture
async def door(
    seed: Seed,
    resources: Resources,
    upkeep: Upkeep,
    retrieve_pool: db.Pool,
    serve: Serve,
    callers: Callers,
    tmp_path: Path,
) -> AsyncIterator[Door]:
    await seed.embed(local_embedder())
    async with open_door(resources, upkeep, retrieve_pool, serve, tmp_path / "home") as opened:
        yield opened


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_the_tools_say_what_they_take_and_what_they_change(door: Door, mode: str) -> None:
    async with door.agent("reader", mode) as client:
        listed = (await client.list_tools()).tools
    assert {tool.name for tool in listed} == TOOLS
    writes = {tool.name for tool in listed if not (tool.annotations or {}).read_only_hint}  # type: ignore[union-attr]
    assert writes == {"recall_apply_fact", "recall_ingest"}
    search = next(tool for tool in listed if tool.name == "recall_search")
    assert search.input_schema["required"] == ["query"]
    assert search.input_schema["properties"]["trust"]["default"] == "strict"
    assert search.description and "refused" in search.description


async def test_without_a_calibration_an_agent_is_refused_before_anything_is_searched(
    door: Door,
) -> None:
    found = await door.call("reader", "search", query=QUESTION)
    assert (found["outcome"], found["refusal"]) == ("refused", "CALIBRATION_MISSING")
    assert "Nothing was searched" in found["reason"]
    assert found["hits"] == []
    answer = await door.call("reader", "ask", question=QUESTION)
    assert (answer["outcome"], answer["refusal"]) == ("refused", "CALIBRATION_MISSING")
    assert (answer["hits"], answer["citations"]) == ([], [])
    assert "db-reset" not in json.dumps([found, answer])


async def test_with_one_it_abstains_and_answers_each_with_the_reason(
    door: Door, seed: Seed
) -> None:
    record(seed, "published", replace(CERTIFIED, cosine_threshold=0.4))
    silent = await door.call("reader", "search", query=ABSENT)
    assert (silent["outcome"], silent["reason"] != "") == ("abstained", True)
    found = await door.call("reader", "search", query=QUESTION)
    assert (found["outcome"], found["reason"]) == ("answered", "")
    best = found["hits"][0]
    assert (best["verdict"], best["provenance"]["generation_id"]) == ("ok", "G1")
    assert 0 <= best["confidence"] <= 1
    assert {"source_uri", "version", "sha256", "indexed_at"} <= set(best["provenance"])
    answer = await door.call("reader", "ask", question=QUESTION)
    assert (answer["outcome"], answer["calibration_id"]) == ("answered", "c-published")
    assert answer["citations"] and answer["text"]
    silent = await door.call("reader", "ask", question=ABSENT)
    assert (silent["outcome"], silent["reason"] != "") == ("abstained", True)


async def test_relaxed_trust_marks_what_nothing_judged(door: Door) -> None:
    found = await door.call("reader", "search", query=QUESTION, trust="relaxed")
    assert (found["outcome"], found["confidence"]) == ("answered", None)
    assert {hit["verdict"] for hit in found["hits"]} == {"unverified"}


async def test_a_token_for_one_workspace_reads_nothing_of_another(door: Door) -> None:
    asked = {"query": QUESTION, "trust": "relaxed"}
    for workspace in ({"workspace": "T1"}, {"workspace": "nowhere"}):
        refused = await door.call("stranger", "search", **asked, **workspace)
        assert "WORKSPACE_NOT_FOUND" in refused["error"]
        assert "db-reset" not in refused["error"]
    found = await door.call("stranger", "search", **asked)
    assert (found["outcome"], found["hits"]) == ("abstained", [])
    status = await door.call("stranger", "status")
    assert [one["workspace_id"] for one in status["workspaces"]] == ["T2"]
    assert "T1" not in json.dumps(status)


async def test_a_token_for_one_channel_reads_nothing_of_another(door: Door) -> None:
    for channels in ({}, {"channels": ["C1"]}, {"channels": ["C9"]}):
        found = await door.call("narrow", "search", query=QUESTION, trust="relaxed", **channels)
        assert FIX not in [hit["message_id"] for hit in found["hits"]]
    found = await door.call("reader", "search", query=QUESTION, trust="relaxed")
    assert FIX in [hit["message_id"] for hit in found["hits"]]


async def test_a_token_only_reads_unless_it_says_otherwise(door: Door) -> None:
    refused = await door.call("reader", "apply_fact", **FACT)
    assert "may only read" in refused["error"]
    decided = await door.call("writer", "apply_fact", **FACT)
    assert decided["decision"] == "CARD_NOT_FOUND"
    assert "card-1" in decided["reason"]
    assert await door.call("writer", "apply_fact", **FACT) == decided


async def test_recorded_facts_are_listed(door: Door) -> None:
    assert await door.call("reader", "current_facts", as_of="2026-03-02") == {"facts": []}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"query": " "}, "question: must not be empty"),
        ({"query": "x", "limit": 51}, "limit"),
        ({"query": "x", "trust": "blind"}, "trust"),
        ({"query": "x", "valid_at": "soon"}, "valid_at: must be a date"),
        ({}, "query"),
    ],
)
async def test_a_malformed_call_names_what_is_wrong(
    door: Door, arguments: dict[str, Any], said: str
) -> None:
    refused = await door.call("reader", "search", **arguments)
    assert said in refused["error"]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        ({"authorization": "Bearer wrong-token-0123456789"}, 401),
        ({"authorization": "Bearer token-of-reader-0123456789", "origin": "https://ex.test"}, 403),
    ],
)
async def test_nobody_comes_in_without_a_token_or_from_another_site(
    door: Door, headers: dict[str, str], status: int
) -> None:
    async with httpx.AsyncClient() as client:
        reply = await client.post(door.url, json={}, headers=headers)
    assert reply.status_code == status
    assert ("www-authenticate" in reply.headers) is (status == 401)
    assert reply.json()["error"]["message"]
