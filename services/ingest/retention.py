"""Deletes what a workspace keeps no longer: messages past its limit, and bots' once switched off.

Without tombstones: whoever stores messages of Slack asks ``read_kept_after`` first, so that
neither history nor a late event brings expired ones back. An older archive that is imported
afterwards loses its expired messages with the next pass.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from services.ingest.delete_messages import remove_messages, remove_some_bot_messages
from services.ingest.import_batch import open_scope
from services.ingest.resources import Resources
from services.ingest.thread_index import Scope
from services.ingest.workspaces import all_workspaces, changing, find_workspace
from services.runtime import db, sql

MESSAGES_AT_ONCE = 500

_STATEMENTS = sql.load("services.ingest", "settings.sql")


async def apply_settings(resources: Resources) -> None:
    """One pass over every workspace."""
    for workspace in await all_workspaces(resources.queue_pool):
        await apply_settings_of(resources, workspace.workspace_id)


async def apply_settings_of(resources: Resources, workspace_id: str) -> None:
    """Delete what the settings of a workspace say, some messages a transaction."""
    for remove_some in (_remove_some_expired, _remove_some_of_bots):
        while await _step(resources, workspace_id, remove_some):
            pass


async def _step(
    resources: Resources, workspace_id: str, remove_some: Callable[[Scope, bool], Awaitable[int]]
) -> bool:
    async with changing(resources.pool, workspace_id) as connection:
        workspace = await find_workspace(connection, workspace_id)
        if workspace is None:
            return False
        scope = await open_scope(connection, workspace, resources)
        return await remove_some(scope, workspace.index_bots) > 0


async def _remove_some_expired(scope: Scope, index_bots: bool) -> int:
    rows = await db.fetch_all(
        scope.connection,
        _STATEMENTS["expired_messages"],
        {"workspace_id": scope.workspace_id, "limit": MESSAGES_AT_ONCE},
    )
    if rows:
        await remove_messages(scope, [row[0] for row in rows])
    return len(rows)


async def _remove_some_of_bots(scope: Scope, index_bots: bool) -> int:
    return 0 if index_bots else await remove_some_bot_messages(scope)
