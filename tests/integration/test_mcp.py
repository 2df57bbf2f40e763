"""Agents: the official client against the door, in front of real ingest and retrieve."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx
import httpx2
import psycopg
import pytest
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client

from services.gateway.clients import Stages
from services.gateway.directory import Directory
from services.gateway.http import Demo, create_app
from services.gateway.http_server import serving_http
from services.gateway.mcp.door import serving_mcp
from services.gateway.mcp.tools import Tools
from services.ingest.resources import Resources
from services.ingest.service import servicers as ingest_servicers
from services.ingest.upkeep import Upkeep
from services.runtime import db
from services.runtime.callers import FILE_NAME, Callers
from services.runtime.server import Listener
from tests.conftest import Serve
from tests.integration import retrieve_stage
from tests.integration.retrieve_stage import FIX, local_embedder, seed_four_messages
from tests.integration.seed import Seed
from tests.integration.test_rejected_calibration import CERTIFIED, record
from tests.scripted_stages import Script, ScriptedRetrieve

QUESTION = "Local Postgres fails with 28P01, what fixed the password failure?"
ABSENT = "an elephant on the moon"
TOOLS = {"recall_search", "recall_ask", "recall_apply_fact", "recall_current_facts",
         "recall_status"}  # fmt: skip
FACT = {
    "namespace": "service", "subject": "api", "predicate": "owner", "object": "Ada",
    "evidence_card_ids": ["card-1"], "request_id": "r1",
}  # fmt: skip


@dataclass
class Door:
    """Where agents knock, and their tokens by name."""

    url: str
    tokens: dict[str, str]

    @asynccontextmanager
    async def agent(self, name: str, mode: str = "auto") -> AsyncIterator[Client]:
        """The official client with one caller's token."""
        headers = {"authorization": f"Bearer {self.tokens[name]}"}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=30) as http,
            Client(streamable_http_client(self.url, http_client=http), mode=mode) as client,
        ):
            yield client

    async def call(self, agent: str, tool: str, **arguments: Any) -> dict[str, Any]:
        """What a tool answers; its error's text under "error"."""
        async with self.agent(agent) as client:
            result = await client.call_tool(f"recall_{tool}", arguments)
        if result.is_error:
            return {"error": result.content[0].text}  # type: ignore[union-attr]
        assert result.structured_content == json.loads(result.content[0].text)  # type: ignore[union-attr]
        return dict(result.structured_content)


def add_callers(home: Path) -> dict[str, str]:
    """Three agents beside the operator; their tokens."""
    path = home / FILE_NAME
    listed = json.loads(path.read_text("utf-8"))
    for name, workspace, channels, rights in (
        ("reader", "T1", ["*"], {}),
        ("narrow", "T1", ["C2"], {}),
        ("writer", "T1", ["*"], {"may_write": True}),
        ("stranger", "T2", ["*"], {}),
    ):
        listed["callers"].append(
            {"name": name, "token": f"token-of-{name}-0123456789", "workspaces": [workspace],
             "channels": channels, **rights}
        )  # fmt: skip
    path.write_text(json.dumps(listed), "utf-8")
    return {entry["name"]: entry["token"] for entry in listed["callers"]}


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
    """The gateway's HTTP listener; writing and ordering are scripted."""
    await seed.embed(local_embedder())
    tokens = add_callers(tmp_path / "home")
    script = Script(ScriptedRetrieve([]))
    async with AsyncExitStack() as stack:
        ingest = await stack.enter_async_context(serve(ingest_servicers(resources, upkeep)))
        retrieve = await stack.enter_async_context(serve(retrieve_stage.servicers(retrieve_pool)))
        rerank = await stack.enter_async_context(serve(script.servicers("rerank")))
        answer = await stack.enter_async_context(serve(script.servicers("answer")))
        stages = Stages(ingest, retrieve, rerank, answer)
        directory = Directory(stages, time.monotonic)
        hosts = ("127.0.0.1", "localhost")
        route = await stack.enter_async_context(
            serving_mcp(Tools(stages, directory), callers, hosts)
        )
        demo = Demo(stages, directory, "beacon", time.monotonic, allowed_hosts=hosts)
        app = create_app(demo, (route,))
        port = await stack.enter_async_context(serving_http(app, Listener("127.0.0.1", 0)))
        yield Door(f"http://127.0.0.1:{port}/mcp", tokens)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_the_tools_say_what_they_take_and_what_they_change(door: Door, mode: str) -> None:
    async with door.agent("reader", mode) as client:
        listed = (await client.list_tools()).tools
    assert {tool.name for tool in listed} == TOOLS
    writes = {tool.name for tool in listed if not (tool.annotations or {}).read_only_hint}  # type: ignore[union-attr]
    assert writes == {"recall_apply_fact"}
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
