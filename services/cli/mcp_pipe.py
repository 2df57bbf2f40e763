"""Between an agent's standard input and output and the gateway's tools."""

from __future__ import annotations

from typing import Any

import httpx2
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.server.lowlevel.server import Server
from mcp.server.stdio import stdio_server
from mcp_types import (
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
)

from recall.error.v1 import error_pb2
from services.runtime.errors import unavailable

# More than the longest build of a collection that the gateway waits for.
READ_SECONDS = 700.0


async def pipe(url: str, token: str) -> None:
    """Serve standard input until it ends. Raises CallError UNAVAILABLE when nobody listens."""
    headers = {"authorization": f"Bearer {token}"}
    try:
        async with (
            httpx2.AsyncClient(headers=headers, timeout=READ_SECONDS) as http,
            Client(streamable_http_client(url, http_client=http)) as gateway,
        ):
            await _serve(gateway)
    except* httpx2.TransportError:
        raise unavailable(
            error_pb2.ERROR_REASON_STAGE_UNAVAILABLE,
            "Recall is not running here. Start it with `make up` (or `make demo`).",
        ) from None


async def _serve(gateway: Client) -> None:
    async def list_tools(_: Any, __: PaginatedRequestParams | None) -> ListToolsResult:
        return await gateway.list_tools()

    async def call_tool(_: Any, params: CallToolRequestParams) -> CallToolResult:
        return await gateway.call_tool(params.name, dict(params.arguments or {}))

    server: Server[Any] = Server(
        "recall",
        instructions=gateway.instructions,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())
