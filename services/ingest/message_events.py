"""Events of messages: posted, changed, deleted, in whatever order they come."""

from __future__ import annotations

import json

from services.corpus import slack_message_id
from services.ingest.authors import child
from services.ingest.delete_messages import delete_messages
from services.ingest.directory import ChannelKind, Directory
from services.ingest.event_turn import Turn
from services.ingest.known_channels import ask_for_history, known_channel
from services.ingest.listing import ChannelRow
from services.ingest.live_messages import write_live_messages
from services.ingest.records import Place, own_record
from services.ingest.slack_event import (
    channel_kind_of,
    deleted_ts_of,
    made_private,
    says_nothing_new,
)
from services.ingest.timestamps import exact_ts
from services.runtime import db, sql

_STATEMENTS = sql.load("services.ingest", "events.sql")


async def on_message(turn: Turn) -> None:
    """Store a message or its newest version, or delete it."""
    if deleted_ts := deleted_ts_of(turn.event):
        message_id = slack_message_id(turn.workspace.team_id, turn.channel_id, deleted_ts)
        await delete_messages(await turn.scope(), [message_id])
        return
    channel = await known_channel(
        turn.connection, turn.workspace_id, turn.channel_id, channel_kind_of(turn.event)
    )
    if made_private(turn.event):
        await _set_private(turn)
    elif not turn.has_words:
        await ask_for_history(turn.connection, turn.workspace_id, turn.channel_id)
    elif not _is_direct(channel) and not await _is_settled(turn, channel):
        raw = json.dumps(own_record(turn.event)).encode()
        await write_live_messages(await turn.scope(), turn.workspace, channel, [raw])


def _is_direct(channel: ChannelRow) -> bool:
    """A direct conversation is where people ask; what they say there is not indexed."""
    return channel.kind in (ChannelKind.DIRECT, ChannelKind.GROUP_DIRECT)


async def _is_settled(turn: Turn, channel: ChannelRow) -> bool:
    """Whether a change brings no words to a message that is stored in that version."""
    place = Place(turn.workspace.team_id, channel.channel_id, channel.name, Directory())
    if not says_nothing_new(turn.event, place):
        return False
    message = child(turn.event, "message")
    ts = exact_ts(message.get("ts")) or ""
    row = await db.fetch_one(
        turn.connection,
        _STATEMENTS["stored_version"],
        {
            "workspace_id": turn.workspace_id,
            "message_id": slack_message_id(place.team_id, place.channel_id, ts),
        },
    )
    return row is not None and row[0] == (exact_ts(child(message, "edited").get("ts")) or "")


async def _set_private(turn: Turn) -> None:
    await turn.connection.execute(
        _STATEMENTS["set_kind"],
        {
            "workspace_id": turn.workspace_id,
            "channel_id": turn.channel_id,
            "kind": ChannelKind.PRIVATE,
        },
    )
