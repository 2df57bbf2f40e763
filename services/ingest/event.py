"""The job "event": makes one event of Slack true in the rows.

Each run is one transaction under the workspace's lock, and it writes only while its claim is
current: what a purge deleted, or another worker took over, is left alone. Running it again changes
nothing. When the job ends, done or dead, the queue drops the envelope from its payload; a dead
event that is tried again has its ids only: a deletion is finished from them, words are asked of
Slack again by reading the channel's history.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from services.ingest.blocks import Json
from services.ingest.change_channel_id import change_channel_id
from services.ingest.channel_events import (
    on_channel_archive,
    on_channel_gone,
    on_channel_named,
    on_channel_shared,
    on_channel_unarchive,
    on_channel_unshared,
)
from services.ingest.event_turn import Turn
from services.ingest.message_events import on_message
from services.ingest.people_events import on_member_joined, on_member_left, on_person
from services.ingest.purges import read_hold
from services.ingest.queue import Job, still_holds
from services.ingest.resources import Resources
from services.ingest.slack_event import deleted_ts_of, event_of, type_of
from services.ingest.versions import edit_order
from services.ingest.workspaces import changing, read_workspace

_HANDLERS: dict[str, Callable[[Turn], Awaitable[None]]] = {
    "message": on_message,
    "channel_created": on_channel_named,
    "channel_rename": on_channel_named,
    "channel_archive": on_channel_archive,
    "channel_unarchive": on_channel_unarchive,
    "channel_shared": on_channel_shared,
    "channel_unshared": on_channel_unshared,
    "channel_deleted": on_channel_gone,
    "channel_left": on_channel_gone,
    "member_joined_channel": on_member_joined,
    "member_left_channel": on_member_left,
    "user_change": on_person,
    "team_join": on_person,
}


async def handle_event(resources: Resources, job: Job) -> None:
    """Handle one event. An event of an unknown kind is ignored."""
    envelope = job.payload.get("envelope")
    event: Json = event_of(envelope.encode()) if envelope else job.payload["event"]
    if type_of(event) == "channel_id_changed":
        await change_channel_id(resources, job, event)
        return
    handler = _HANDLERS.get(type_of(event))
    if handler is None:
        return
    async with changing(resources.pool, job.workspace_id) as connection:
        if not await still_holds(connection, job):
            return
        workspace = await read_workspace(connection, job.workspace_id)
        event_id = job.payload["event_id"]
        turn = Turn(resources, connection, workspace, event_id, event, bool(envelope))
        if not await _is_older_than_a_purge(turn):
            await handler(turn)


async def _is_older_than_a_purge(turn: Turn) -> bool:
    """Whether it happened before a purge of its channel. A deletion is made true all the same."""
    if not turn.channel_id or deleted_ts_of(turn.event):
        return False
    hold = await read_hold(turn.connection, turn.workspace_id, turn.channel_id)
    return bool(hold) and edit_order(turn.ts, None) <= edit_order(hold, None)
