"""RemoveInstallation: an app that leaves a workspace leaves nothing behind."""

from __future__ import annotations

from services.ingest.lease_token import not_installed
from services.ingest.purges import open_workspace_purge, request_workspace_purge
from services.ingest.resources import Resources
from services.ingest.teams import hold_installation
from services.runtime import db


async def remove_installation(resources: Resources, workspace_id: str) -> str:
    """Forget the tokens at once and ask for the purge of the workspace; the purge's id.

    Raises CallError NOT_FOUND without an installation.
    """
    async with db.writing(resources.pool, workspace_id) as connection:
        if not await hold_installation(connection, workspace_id):
            if under_way := await open_workspace_purge(connection, workspace_id):
                return under_way
            raise not_installed(workspace_id)
        return await request_workspace_purge(connection, workspace_id)
