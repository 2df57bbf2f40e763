"""The door for agents in front of real ingest and retrieve, and the official client."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
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
from tests.scripted_stages import Script, ScriptedRetrieve


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
    """Agents beside the operator; their tokens."""
    path = home / FILE_NAME
    listed = json.loads(path.read_text("utf-8"))
    for name, workspace, channels, rights in (
        ("reader", "T1", ["*"], {}),
        ("narrow", "T1", ["C2"], {}),
        ("writer", "T1", ["*"], {"may_write": True}),
        ("stranger", "T2", ["*"], {}),
        ("librarian", "documents", ["notes"], {"may_write": True}),
    ):
        listed["callers"].append(
            {"name": name, "token": f"token-of-{name}-0123456789", "workspaces": [workspace],
             "channels": channels, **rights}
        )  # fmt: skip
    path.write_text(json.dumps(listed), "utf-8")
    return {entry["name"]: entry["token"] for entry in listed["callers"]}


@asynccontextmanager
async def open_door(
    resources: Resources, upkeep: Upkeep, retrieve_pool: db.Pool, serve: Serve, home: Path
) -> AsyncIterator[Door]:
    """The gateway's HTTP listener; writing and ordering are scripted."""
    tokens = add_callers(home)
    callers = Callers(home / FILE_NAME)
    script = Script(ScriptedRetrieve([]))
    async with AsyncExitStack() as stack:
        ingest = await stack.enter_async_context(serve(ingest_servicers(resources, upkeep)))
        retrieve = await stack.enter_async_context(serve(retrieve_stage.servicers(retrieve_pool)))
        rerank = await stack.enter_async_context(serve(script.servicers("rerank")))
        answer = await stack.enter_async_context(serve(script.servicers("answer")))
        stages = Stages(ingest, retrieve, rerank, answer)
        directory = Directory(stages, time.monotonic, keep_seconds=0)
        hosts = ("127.0.0.1", "localhost")
        route = await stack.enter_async_context(
            serving_mcp(Tools(stages, directory), callers, hosts)
        )
        demo = Demo(stages, directory, "beacon", time.monotonic, allowed_hosts=hosts)
        app = create_app(demo, (route,))
        port = await stack.enter_async_context(serving_http(app, Listener("127.0.0.1", 0)))
        yield Door(f"http://127.0.0.1:{port}/mcp", tokens)
