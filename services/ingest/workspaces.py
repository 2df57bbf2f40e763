"""Workspaces: reading, creating and changing one, under the lock that orders its writers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import grpc

from recall.error.v1 import error_pb2
from services.corpus import Source
from services.runtime import db, sql
from services.runtime.errors import CallError

_STATEMENTS = sql.load("services.ingest", "workspaces.sql")


@dataclass(frozen=True)
class Workspace:
    """One tenant. ``team_id`` is the team in its Slack message ids, empty for other sources."""

    workspace_id: str
    source: Source
    team_id: str
    index_bots: bool


@asynccontextmanager
async def changing(pool: db.Pool, workspace_id: str) -> AsyncIterator[db.Connection]:
    """A transaction that no other writer of the workspace's messages or generations overlaps."""
    async with db.writing(pool, workspace_id) as connection:
        await connection.execute(_STATEMENTS["lock_workspace"], {"workspace_id": workspace_id})
        yield connection


async def read_workspace(connection: db.Connection, workspace_id: str) -> Workspace:
    """A workspace. Raises CallError WORKSPACE_NOT_FOUND."""
    workspace = await find_workspace(connection, workspace_id)
    if workspace is None:
        raise CallError(
            grpc.StatusCode.NOT_FOUND,
            error_pb2.ERROR_REASON_WORKSPACE_NOT_FOUND,
            f"There is no workspace {workspace_id!r}. Create it with "
            f"`recall import PATH --workspace {workspace_id}`.",
            metadata={"workspace_id": workspace_id},
        )
    return workspace


async def find_workspace(connection: db.Connection, workspace_id: str) -> Workspace | None:
    """A workspace, or None."""
    row = await db.fetch_one(
        connection, _STATEMENTS["read_workspace"], {"workspace_id": workspace_id}
    )
    return _workspace(row) if row else None


async def create_workspace(
    connection: db.Connection, workspace_id: str, source: Source, team_id: str
) -> Workspace:
    """The workspace, created unless it exists; an existing one keeps its source and team."""
    await connection.execute(
        _STATEMENTS["create_workspace"],
        {"workspace_id": workspace_id, "source": source, "team_id": team_id},
    )
    return await read_workspace(connection, workspace_id)


async def set_index_bots(connection: db.Connection, workspace_id: str, index_bots: bool) -> None:
    """Store whether bot messages are indexed."""
    await connection.execute(
        _STATEMENTS["set_index_bots"], {"workspace_id": workspace_id, "index_bots": index_bots}
    )


async def all_workspaces(queue_pool: db.Pool) -> list[Workspace]:
    """Every workspace by id."""
    async with db.across_tenants(queue_pool) as connection:
        rows = await db.fetch_all(connection, _STATEMENTS["list_workspaces"], {})
    return [_workspace(row) for row in rows]


async def workspaces_of_team(queue_pool: db.Pool, team_id: str) -> list[str]:
    """Ids of the workspaces that hold a Slack team."""
    async with db.across_tenants(queue_pool) as connection:
        rows = await db.fetch_all(
            connection, _STATEMENTS["workspaces_of_team"], {"team_id": team_id}
        )
    return [row[0] for row in rows]


def _workspace(row: tuple[str, str, str, bool]) -> Workspace:
    return Workspace(row[0], Source(row[1]), row[2], row[3])
