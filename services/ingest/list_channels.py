"""ListChannels: the channels of a workspace that a caller may read."""

from __future__ import annotations

from services.ingest.directory_store import read_channels
from services.ingest.listing import ChannelRow
from services.ingest.resources import Resources
from services.ingest.workspaces import read_workspace
from services.runtime import db
from services.runtime.callers import Caller


async def list_channels(
    resources: Resources, workspace_id: str, caller: Caller
) -> list[ChannelRow]:
    """Channels by name; those that the caller may not read are left out.

    Raises CallError WORKSPACE_NOT_FOUND.
    """
    async with db.reading(resources.pool, workspace_id) as connection:
        await read_workspace(connection, workspace_id)
        return await readable_channels(connection, workspace_id, caller)


async def readable_channels(
    connection: db.Connection, workspace_id: str, caller: Caller
) -> list[ChannelRow]:
    """The channels of a workspace that a caller may read, by name."""
    channels = await read_channels(connection, workspace_id)
    return [channel for channel in channels if caller.may_read_channel(channel.channel_id)]
