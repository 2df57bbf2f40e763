"""Channels as events tell of them: made known, named, marked."""

from __future__ import annotations

from services.ingest.directory import ChannelKind
from services.ingest.directory_store import add_channel, save_channels
from services.ingest.listing import ChannelRow
from services.ingest.purges import read_hold
from services.ingest.queue import NewJob, enqueue
from services.ingest.rendering import ask_to_render
from services.runtime import db, sql

_STATEMENTS = sql.load("services.ingest", "events.sql")


async def read_channel(
    connection: db.Connection, workspace_id: str, channel_id: str
) -> ChannelRow | None:
    """A channel; None when nothing told of it."""
    key = {"workspace_id": workspace_id, "channel_id": channel_id}
    row = await db.fetch_one(connection, _STATEMENTS["read_channel"], key)
    return ChannelRow(*row) if row else None


async def known_channel(
    connection: db.Connection, workspace_id: str, channel_id: str, kind: ChannelKind
) -> ChannelRow:
    """A channel, created under its id when nothing told of it; then its history is asked for.

    Whoever reads the history learns the name and the rest. A channel that was purged while the
    app stayed in it is taken up again without its history.
    """
    channel = await read_channel(connection, workspace_id, channel_id)
    if channel is not None:
        return channel
    channel = ChannelRow(channel_id, channel_id, kind, False, "")
    await add_channel(connection, workspace_id, channel)
    if not await read_hold(connection, workspace_id, channel_id):
        await ask_for_history(connection, workspace_id, channel_id)
    return channel


async def save_channel(connection: db.Connection, workspace_id: str, channel: ChannelRow) -> None:
    """Store what is known of a channel now; chunks get a new name by a job of their own."""
    before = await read_channel(connection, workspace_id, channel.channel_id)
    if channel == before:
        return
    await save_channels(connection, workspace_id, [channel])
    if before is not None and before.name != channel.name:
        await ask_to_render(connection, workspace_id, channel_id=channel.channel_id)


async def ask_for_history(connection: db.Connection, workspace_id: str, channel_id: str) -> None:
    """Ask for the history of one channel."""
    job = NewJob("backfill", f"channel:{channel_id}", {"channel_id": channel_id})
    await enqueue(connection, workspace_id, job)
