"""StartBackfill: asks for the history of one channel, or of every channel that the app is in."""

from __future__ import annotations

from services.ingest.backfill_jobs import ask_for_listing, ask_for_reading
from services.ingest.channel_history import Channels
from services.ingest.known_channels import ask_for_history, read_channel
from services.ingest.lease_token import not_installed
from services.ingest.purges import lift_holds
from services.ingest.reconcile import look_for_what_was_missed
from services.ingest.resources import Resources
from services.ingest.teams import hold_installation
from services.ingest.workspaces import changing
from services.runtime import db
from services.runtime.errors import not_found


async def start_backfill(
    resources: Resources, workspace_id: str, channel_id: str = "", *, only_recent: bool = False
) -> int:
    """How many known channels will be read; a listing adds those that are new.

    ``only_recent`` looks again at the last days of what is complete, for what was missed while no
    events came. Raises CallError NOT_FOUND for an unknown channel and without an installed app.
    """
    async with changing(resources.pool, workspace_id) as connection:
        if not await hold_installation(connection, workspace_id):
            raise not_installed(workspace_id)
        if channel_id and await read_channel(connection, workspace_id, channel_id) is None:
            raise not_found(f"There is no channel {channel_id!r}. `recall status` lists them.")
        channels = Channels(connection, workspace_id, None)
        if only_recent:
            return await _read_recent(channels, channel_id)
        if channel_id:
            return await _read_channel(connection, workspace_id, channel_id)
        count = await channels.read_all_again()
        await ask_for_listing(connection, workspace_id)
        await ask_for_reading(connection, workspace_id)
        return count


async def _read_recent(channels: Channels, channel_id: str) -> int:
    if not channel_id:
        return await look_for_what_was_missed(channels)
    count = await channels.reconcile_soon(channel_id)
    await ask_for_reading(channels.connection, channels.workspace_id)
    return count


async def _read_channel(connection: db.Connection, workspace_id: str, channel_id: str) -> int:
    await lift_holds(connection, workspace_id, channel_id)
    await ask_for_history(connection, workspace_id, channel_id)
    return 1
