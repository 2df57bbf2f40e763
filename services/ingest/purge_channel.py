"""PurgeChannel: everything of one channel, and none of it back until the app joins it anew."""

from __future__ import annotations

from services.ingest.known_channels import read_channel
from services.ingest.purges import request_channel_purge
from services.ingest.resources import Resources
from services.ingest.workspaces import read_workspace
from services.runtime import db
from services.runtime.errors import not_found


async def purge_channel(resources: Resources, workspace_id: str, channel_id: str) -> str:
    """Ask for the purge of a channel; its id.

    While the app stays in the channel, newer messages are stored; the history is not read again.
    Raises CallError WORKSPACE_NOT_FOUND, or NOT_FOUND for a channel that is not stored.
    """
    async with db.writing(resources.pool, workspace_id) as connection:
        await read_workspace(connection, workspace_id)
        if await read_channel(connection, workspace_id, channel_id) is None:
            raise not_found(
                f"Workspace {workspace_id!r} has no channel {channel_id!r}. `recall status` names "
                "the channels."
            )
        return await request_channel_purge(connection, workspace_id, channel_id)
