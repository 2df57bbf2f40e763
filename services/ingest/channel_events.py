"""Events of channels: created, renamed, archived, shared, deleted, left."""

from __future__ import annotations

from dataclasses import replace

from services.ingest.authors import child
from services.ingest.blocks import Json, string
from services.ingest.directory import read_channel as read_entry
from services.ingest.event_turn import Turn
from services.ingest.known_channels import ask_for_history, read_channel, save_channel
from services.ingest.listing import ChannelRow
from services.ingest.live_messages import read_bot
from services.ingest.markup import storable
from services.ingest.membership import Membership, remove_member
from services.ingest.purges import request_channel_purge
from services.ingest.slack_event import channel_kind_of
from services.runtime import db, sql

_STATEMENTS = sql.load("services.ingest", "events.sql")


async def on_channel_named(turn: Turn) -> None:
    """A channel was created or renamed. Without its name Slack is asked."""
    if not turn.has_words:
        await ask_for_history(turn.connection, turn.workspace_id, turn.channel_id)
        return
    described = child(turn.event, "channel")
    entry = read_entry(described, channel_kind_of(turn.event))
    if entry is None or not entry.name:
        return
    before = await read_channel(turn.connection, turn.workspace_id, entry.channel_id)
    purpose = _value(described, "purpose") or _value(described, "topic")
    named = (
        replace(before, name=entry.name)
        if before
        else ChannelRow(entry.channel_id, entry.name, entry.kind, entry.is_archived, purpose)
    )
    if before is None:
        await save_channel(turn.connection, turn.workspace_id, named)
    if await _is_newest_name(turn):
        await save_channel(turn.connection, turn.workspace_id, named)


async def on_channel_archive(turn: Turn) -> None:
    """Archived: its messages stay."""
    await _mark(turn, "set_archived", is_archived=True)


async def on_channel_unarchive(turn: Turn) -> None:
    """In use again."""
    await _mark(turn, "set_archived", is_archived=False)


async def on_channel_shared(turn: Turn) -> None:
    """People of other teams are in it."""
    await _mark(turn, "set_shared", is_shared=True)


async def on_channel_unshared(turn: Turn) -> None:
    """One team less; the event says whether any other is left."""
    await _mark(turn, "set_shared", is_shared=turn.event.get("is_ext_shared") is True)


async def on_channel_gone(turn: Turn) -> None:
    """The channel was deleted, or the app is no longer in it: nothing of it stays."""
    bot = await read_bot(turn.connection, turn.workspace_id)
    left = Membership(turn.workspace_id, turn.channel_id, bot.user_id, turn.ts)
    if await remove_member(turn.connection, left):
        await request_channel_purge(
            turn.connection, turn.workspace_id, turn.channel_id, f"event-{turn.event_id}", turn.ts
        )


async def _is_newest_name(turn: Turn) -> bool:
    """Whether no newer event has named the channel; if so, this one has from now on."""
    key = {"workspace_id": turn.workspace_id, "channel_id": turn.channel_id, "ts": turn.ts}
    return await db.fetch_one(turn.connection, _STATEMENTS["take_name"], key) is not None


async def _mark(turn: Turn, statement: str, **values: bool) -> None:
    key = {"workspace_id": turn.workspace_id, "channel_id": turn.channel_id, "ts": turn.ts}
    await turn.connection.execute(_STATEMENTS[statement], {**key, **values})


def _value(described: Json, name: str) -> str:
    return storable(string(child(described, name).get("value"))).strip()
