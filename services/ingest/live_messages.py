"""Messages of an installed app, from events and from history: read, judged and stored one way."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from services.corpus import Source
from services.ingest.directory import Directory
from services.ingest.directory_store import add_guests
from services.ingest.import_batch import guest_of
from services.ingest.import_parts import RawRecord
from services.ingest.kept_after import read_kept_after, still_kept
from services.ingest.listing import ChannelRow, PersonRow
from services.ingest.mentioned import mentioned_directory
from services.ingest.read_batch import Reader, read_batch
from services.ingest.records import IncomingMessage, Place
from services.ingest.store import Stored, write_batch
from services.ingest.thread_index import Scope
from services.ingest.workspaces import Workspace
from services.runtime import db, sql

_STATEMENTS = sql.load("services.ingest", "events.sql")


@dataclass(frozen=True)
class Bot:
    """The app's own bot; empty ids when nothing is installed."""

    user_id: str = ""
    bot_id: str = ""

    def wrote(self, message: IncomingMessage) -> bool:
        """Whether a message is the app's own. An answer is never evidence: it repeats evidence."""
        return message.author_id != "" and message.author_id in (self.user_id, self.bot_id)


async def read_bot(connection: db.Connection, workspace_id: str) -> Bot:
    """The bot of the workspace's installation."""
    row = await db.fetch_one(connection, _STATEMENTS["read_bot"], {"workspace_id": workspace_id})
    return Bot(*row) if row else Bot()


async def write_live_messages(
    scope: Scope, workspace: Workspace, raw_records: Sequence[tuple[ChannelRow, bytes]]
) -> Stored:
    """Store records of some channels, deletions among them, in the transaction of ``scope``.

    ``raw_records`` are message objects as history gives them, UTF-8 JSON, each with its channel.
    The app's own messages and those older than their channel keeps are left out. The fates are of
    the others, in order.
    """
    raws = [raw for _, raw in raw_records]
    channels = {channel.channel_id: channel for channel, _ in raw_records}
    directory = await mentioned_directory(scope.connection, scope.workspace_id, raws)
    places = {
        channel.channel_id: Place(
            workspace.team_id, channel.channel_id, channel.name, directory, workspace.index_bots
        )
        for channel in channels.values()
    }
    reader = Reader(Source.SLACK, directory, places, workspace.index_bots)
    records = [RawRecord(channel.channel_id, "", raw) for channel, raw in raw_records]
    batch = await asyncio.to_thread(read_batch, reader, records)
    bot = await read_bot(scope.connection, scope.workspace_id)
    kept_after = await read_kept_after(scope.connection, scope.workspace_id, list(channels))
    kept = still_kept(batch.messages, kept_after)
    batch.messages = [message for message in kept if not bot.wrote(message)]
    await add_guests(scope.connection, scope.workspace_id, _guests(directory, batch.messages))
    return await write_batch(scope, batch.to_store(), directory)


def _guests(directory: Directory, messages: Iterable[IncomingMessage]) -> list[PersonRow]:
    """Authors whom only their messages name, so that they are found by name."""
    guests = {
        message.author_id: guest_of(message)
        for message in messages
        if message.author_id and message.author_name and message.author_id not in directory.people
    }
    return list(guests.values())
