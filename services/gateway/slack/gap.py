"""What was said while this process did not listen is read from history."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import structlog

from recall.ingest.v1 import ingest_pb2
from services.gateway.clients import Stages, reach
from services.gateway.slack.oauth import start_backfill
from services.runtime.background import running
from services.runtime.errors import CallError

LIST_SECONDS = 5.0
# Between two workspaces, so that a start with many of them is no burst of work for ingest.
PACE_SECONDS = 0.2
# Ingest may start after the gateway.
RETRY_SECONDS = 2.0

Sleep = Callable[[float], Awaitable[None]]

log = structlog.get_logger("gap")


async def fill_the_gap(stages: Stages, sleep: Sleep = asyncio.sleep) -> bool:
    """Ask for the recent history of every workspace with a Slack team; False without ingest.

    One whose history was read again minutes ago is left to ingest, which knows.
    """
    request = ingest_pb2.ListWorkspacesRequest()
    try:
        listed = await reach("ingest", stages.directory.ListWorkspaces, request, LIST_SECONDS)
    except CallError as error:
        log.info("workspaces unknown yet", cause=error.reason_name)
        return False
    for workspace in listed.workspaces:
        if workspace.team_id:
            await start_backfill(stages, workspace.workspace_id)
            await sleep(PACE_SECONDS)
    return True


@asynccontextmanager
async def filling_the_gap(stages: Stages, sleep: Sleep = asyncio.sleep) -> AsyncIterator[None]:
    """Fill it once, as soon as ingest answers, during the block."""
    async with running(_once(stages, sleep)):
        yield


async def _once(stages: Stages, sleep: Sleep) -> None:
    while not await fill_the_gap(stages, sleep):
        await sleep(RETRY_SECONDS)
