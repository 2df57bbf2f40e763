"""An agent on a running stack, through `recall mcp` and the official client; facts by command."""

from __future__ import annotations

import json
import sys
from typing import Any

from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters

from tests.e2e.conftest import REPOSITORY, Running

QUESTION = "Which command fixed the local 28P01 Postgres failure?"


async def call(beacon: Running, tool: str, **arguments: Any) -> dict[str, Any]:
    """What a tool answers through the pipe."""
    server = StdioServerParameters(
        command=sys.executable,
        args=["-m", "services.cli", "mcp"],
        env=beacon.environ,
        cwd=REPOSITORY,
    )
    async with Client(server) as client:
        result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    return dict(result.structured_content or {})


async def test_an_agent_is_refused_until_it_relaxes_and_then_answered(beacon: Running) -> None:
    asked = {"question": QUESTION, "workspace": "beacon"}
    refused = await call(beacon, "recall_ask", **asked)
    assert (refused["outcome"], refused["refusal"]) == ("refused", "CALIBRATION_MISSING")
    answer = await call(beacon, "recall_ask", **asked, trust="relaxed")
    assert answer["outcome"] == "answered"
    assert "ALTER ROLE beacon PASSWORD" in answer["text"]
    assert {hit["verdict"] for hit in answer["hits"]} == {"unverified"}


async def test_an_agent_sees_the_stack(beacon: Running) -> None:
    status = await call(beacon, "recall_status")
    assert all(stage["serving"] for stage in status["stages"])
    assert "beacon" in [workspace["workspace_id"] for workspace in status["workspaces"]]


def test_a_caller_that_is_not_listed_is_named(beacon: Running) -> None:
    result = beacon.recall("mcp", "--caller", "nobody")
    assert result.status == 1
    assert "lists no caller 'nobody'" in result.errors


def test_no_facts_are_listed_and_an_unknown_card_records_none(beacon: Running) -> None:
    listed = beacon.recall("facts", "--workspace", "beacon", "--json")
    assert (listed.status, json.loads(listed.output)) == (0, [])
    fact = ("--namespace", "service", "--subject", "api", "--predicate", "owner", "--object", "Ada")
    applied = beacon.recall(
        "facts", "apply", *fact, "--card", "card-1", "--workspace", "beacon", "--json"
    )
    assert applied.status == 3
    assert applied.json["decision"] == "CARD_NOT_FOUND"
    assert beacon.recall("facts", "apply", *fact, "--workspace", "beacon").status == 2
