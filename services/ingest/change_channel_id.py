"""A channel got another id: everything stored under the old one moves, some threads a transaction.

Message ids carry the channel's id, so messages and their chunks get new ones; texts stay the same,
hence so do vectors. Stopped at any point, it goes on where it was: what moved is under the new id.
"""

from __future__ import annotations

from services.corpus import slack_message_id
from services.ingest.blocks import Json, string
from services.ingest.identifiers import storable_id
from services.ingest.import_batch import open_scope
from services.ingest.known_channels import ask_for_history
from services.ingest.queue import Job, still_holds
from services.ingest.resources import Resources
from services.ingest.thread_index import Scope, Written, drop_chunks_of, index_threads, settle
from services.ingest.workspaces import Workspace, changing, read_workspace
from services.runtime import db, sql

MESSAGES_AT_ONCE = 500
_LAST_STEPS = (
    "copy_members",
    "move_channel_history",
    "move_thread_history",
    "move_corrections",
    "move_feedback",
    "drop_channel",
    "drop_tombstones",
)

_STATEMENTS = sql.load("services.ingest", "change_channel_id.sql")


async def change_channel_id(resources: Resources, job: Job, event: Json) -> None:
    """Move what is stored under ``old_channel_id`` to ``new_channel_id``."""
    old_id = storable_id(string(event.get("old_channel_id")))
    new_id = storable_id(string(event.get("new_channel_id")))
    if not old_id or not new_id or old_id == new_id:
        return
    while True:
        async with changing(resources.pool, job.workspace_id) as connection:
            if not await still_holds(connection, job):
                return
            workspace = await read_workspace(connection, job.workspace_id)
            ids = _ids(workspace, old_id, new_id)
            await _copy(connection, ids)
            scope = await open_scope(connection, workspace, resources)
            if not await _move_some(scope, ids):
                await _finish(connection, ids)
                return


async def _copy(connection: db.Connection, ids: dict[str, str]) -> None:
    """What must be there under the new id before messages are."""
    for name in ("copy_channel", "copy_tombstones"):
        await connection.execute(_STATEMENTS[name], ids)


async def _move_some(scope: Scope, ids: dict[str, str]) -> bool:
    """Move the next messages and their threads' chunks; False when there are none."""
    rows = await db.fetch_all(
        scope.connection, _STATEMENTS["some_messages"], {**ids, "limit": MESSAGES_AT_ONCE}
    )
    if not rows:
        return False
    written = Written()
    moving = {**ids, "message_ids": [row[0] for row in rows]}
    roots = {row[1] for row in rows} | await drop_chunks_of(
        scope, [row[0] for row in rows], written
    )
    await scope.connection.execute(_STATEMENTS["drop_known_messages"], moving)
    moved = await db.fetch_all(scope.connection, _STATEMENTS["move_messages"], moving)
    await index_threads(scope, roots | {row[0] for row in moved}, written)
    await settle(scope, written)
    return True


async def _finish(connection: db.Connection, ids: dict[str, str]) -> None:
    for name in _LAST_STEPS:
        await connection.execute(_STATEMENTS[name], ids)
    if await db.fetch_one(connection, _STATEMENTS["is_read"], ids) is None:
        await ask_for_history(connection, ids["workspace_id"], ids["new_id"])


def _ids(workspace: Workspace, old_id: str, new_id: str) -> dict[str, str]:
    return {
        "workspace_id": workspace.workspace_id,
        "old_id": old_id,
        "new_id": new_id,
        "old_prefix": slack_message_id(workspace.team_id, old_id, ""),
        "new_prefix": slack_message_id(workspace.team_id, new_id, ""),
    }
