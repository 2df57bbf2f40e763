"""The job "channel:<id>": learns what a channel is called and has its history read."""

from __future__ import annotations

from datetime import UTC, datetime

from services.ingest.authors import child
from services.ingest.backfill_jobs import ask_for_reading
from services.ingest.blocks import Json, string
from services.ingest.channel_history import FULL, ChannelReading
from services.ingest.directory import Channel, ChannelKind, read_channel
from services.ingest.history_run import Later, Rows, Run
from services.ingest.known_channels import save_channel
from services.ingest.listing import ChannelRow
from services.ingest.markup import storable
from services.ingest.pacing import CHANNEL
from services.ingest.refused_listings import after_refusal
from services.ingest.slack_history import Refusal, Remedy
from services.runtime import sql

_EVENTS = sql.load("services.ingest", "events.sql")


async def take_up_channel(run: Run, channel_id: str) -> Later | None:
    """Have one channel read; one that was read is read again from its newest message on.

    Other channels are not touched. Direct messages are not read, nor is a channel that the app is
    not in.
    """
    payload = {"channel_id": channel_id}
    if away_seconds := await run.slot(CHANNEL):
        return Later(away_seconds, payload)
    described = await run.slack.read_channel(channel_id)
    if isinstance(described, Refusal):
        if described.remedy is not Remedy.LEAVE:
            return await after_refusal(run, CHANNEL, described, payload)
        described = {"is_member": False}
    async with run.storing() as rows:
        if rows is not None:
            await _take_up(rows, channel_id, described)
    return None


async def _take_up(rows: Rows, channel_id: str, described: Json) -> None:
    if described.get("is_im") is True or described.get("is_mpim") is True:
        return
    if described.get("is_member") is False:
        await rows.channels.leave(channel_id, "not_in_channel")
        return
    before = await save_listed(rows, {**described, "id": channel_id})
    if before is not None and before.is_again and before.open_pass != FULL:
        await rows.channels.begin_pass(channel_id, FULL)
    await ask_for_reading(rows.connection, rows.channels.workspace_id)


async def save_listed(rows: Rows, entry: Json) -> ChannelReading | None:
    """Store a channel as Slack describes it, and have it read; how far it was before."""
    kind = ChannelKind.PRIVATE if entry.get("is_private") is True else ChannelKind.PUBLIC
    channel = read_channel(entry, kind)
    if channel is None:
        return None
    workspace_id = rows.channels.workspace_id
    await save_channel(rows.connection, workspace_id, _row_of(channel, entry))
    is_shared = entry.get("is_ext_shared") is True
    key = {"workspace_id": workspace_id, "channel_id": channel.channel_id}
    await rows.connection.execute(_EVENTS["set_shared"], {**key, "is_shared": is_shared})
    return await rows.channels.take_up(channel.channel_id, _begin_of(entry))


def _row_of(channel: Channel, entry: Json) -> ChannelRow:
    purpose = _value(entry, "purpose") or _value(entry, "topic")
    name = channel.name or channel.channel_id
    return ChannelRow(channel.channel_id, name, channel.kind, channel.is_archived, purpose)


def _value(entry: Json, name: str) -> str:
    return storable(string(child(entry, name).get("value"))).strip()


def _begin_of(entry: Json) -> datetime | None:
    """When the channel was made; None when Slack does not tell it in seconds."""
    digits = string(entry.get("created"))
    if not (digits.isascii() and digits.isdigit() and 0 < int(digits[:11]) < 10**10):
        return None
    return datetime.fromtimestamp(int(digits[:11]), UTC)
