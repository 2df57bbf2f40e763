"""Events of messages: posted, changed, deleted, in whatever order they come."""

from __future__ import annotations

import json
from collections.abc import Sequence

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

# Raw records with their channels, which wait to be written.
Words = list[tuple[ChannelRow, bytes]]

_STATEMENTS = sql.load("services.ingest", "events.sql")


async def on_messages(turns: Sequence[Turn]) -> None:
    """Store messages or their newest versions, or delete them, all in the turns' transaction.

    Deletions go first: their tombstones were left when they were recorded.
    """
    await _delete([turn for turn in turns if deleted_ts_of(turn.event)])
    channels: dict[str, ChannelRow] = {}
    words: Words = []
    for turn in turns:
        if not deleted_ts_of(turn.event):
            channel = channels.get(turn.channel_id) or await _channel_of(turn)
            channels[turn.channel_id] = channel
            await _take(turn, channel, words)
    if words:
        await _write(turns[0], words)


async def _delete(turns: Sequence[Turn]) -> None:
    message_ids = [
        slack_message_id(turn.workspace.team_id, turn.channel_id, deleted_ts_of(turn.event))
        for turn in turns
    ]
    if message_ids:
        await delete_messages(await turns[0].scope(), message_ids)


async def _channel_of(turn: Turn) -> ChannelRow:
    kind = channel_kind_of(turn.event)
    return await known_channel(turn.connection, turn.workspace_id, turn.channel_id, kind)


async def _take(turn: Turn, channel: ChannelRow, words: Words) -> None:
    """Do what one event asks for; the words that it brings wait to be written with others."""
    if made_private(turn.event):
        await _set_private(turn)
    elif not turn.has_words:
        await ask_for_history(turn.connection, turn.workspace_id, turn.channel_id)
    elif not _is_direct(channel) and not await _is_settled(turn, channel, words):
        words.append((channel, json.dumps(own_record(turn.event)).encode()))


async def _write(turn: Turn, words: Words) -> None:
    await write_live_messages(await turn.scope(), turn.workspace, words)
    words.clear()


def _is_direct(channel: ChannelRow) -> bool:
    """A direct conversation is where people ask; what they say there is not indexed."""
    return channel.kind in (ChannelKind.DIRECT, ChannelKind.GROUP_DIRECT)


async def _is_settled(turn: Turn, channel: ChannelRow, words: Words) -> bool:
    """Whether a change brings no words to a message that is stored in that version."""
    place = Place(turn.workspace.team_id, channel.channel_id, channel.name, Directory())
    if not says_nothing_new(turn.event, place):
        return False
    if words:
        # They may hold this message.
        await _write(turn, words)
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
