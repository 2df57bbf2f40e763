"""PurgeWorkspace: everything of a workspace, first in the queue."""

from __future__ import annotations

from services.ingest.purges import open_workspace_purge, request_workspace_purge
from services.ingest.resources import Resources
from services.ingest.workspaces import read_workspace
from services.runtime import db


async def purge_workspace(resources: Resources, workspace_id: str) -> str:
    """Ask for the purge of everything of a workspace; its id.

    The installation and its tokens go at once. Asked again while it is under way, it is the same
    purge. Raises CallError WORKSPACE_NOT_FOUND.
    """
    async with db.writing(resources.pool, workspace_id) as connection:
        if under_way := await open_workspace_purge(connection, workspace_id):
            return under_way
        await read_workspace(connection, workspace_id)
        return await request_workspace_purge(connection, workspace_id)
