"""One batch of an import: understand it in a thread, write it in one transaction."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from services.corpus import Source
from services.ingest.directory import ChannelKind, Directory
from services.ingest.directory_store import add_channel, add_guests
from services.ingest.generations import following
from services.ingest.identifiers import storable_id
from services.ingest.import_parts import LeftOut, RawRecord
from services.ingest.listing import ChannelRow, Folders, PersonRow
from services.ingest.markup import one_line
from services.ingest.read_batch import ReadBatch, Reader, read_batch
from services.ingest.records import IncomingMessage, Place
from services.ingest.resources import Resources
from services.ingest.store import write_batch
from services.ingest.tally import Tally
from services.ingest.thread_index import Scope
from services.ingest.workspaces import Workspace, changing
from services.runtime import db


@dataclass
class ImportState:
    """What an import knows while it runs. Its sets hold ids of people and channels only."""

    workspace: Workspace
    directory: Directory
    folders: Folders
    has_listing: bool
    tally: Tally
    places: dict[str, Place] = field(default_factory=dict)
    channel_ids: set[str] = field(default_factory=set)
    guest_ids: set[str] = field(default_factory=set)


async def write_records(
    resources: Resources, state: ImportState, items: Sequence[RawRecord | LeftOut]
) -> None:
    """Read and store a batch, and count what became of every record."""
    records = [item for item in items if isinstance(item, RawRecord)]
    for item in items:
        if isinstance(item, LeftOut):
            state.tally.add_left_out(item)
    new_channels = _find_places(state, records)
    reader = Reader(
        state.workspace.source, state.directory, state.places, state.workspace.index_bots
    )
    batch = await asyncio.to_thread(read_batch, reader, records)
    new_channels += _line_channels(state, batch.messages)
    await _store(resources, state, batch, new_channels)
    _count(state.tally, batch, len(records))


async def _store(
    resources: Resources, state: ImportState, batch: ReadBatch, new_channels: list[ChannelRow]
) -> None:
    workspace = state.workspace
    guests = _guests(state, batch.messages)
    async with changing(resources.pool, workspace.workspace_id) as connection:
        for channel in new_channels:
            await add_channel(connection, workspace.workspace_id, channel)
        await add_guests(connection, workspace.workspace_id, guests)
        scope = await open_scope(connection, workspace, resources)
        stored = await write_batch(scope, batch.to_store(), state.directory)
    state.guest_ids |= {guest.person_id for guest in guests}
    state.tally.add_fates(stored.fates)
    state.tally.add_deletions(len(batch.deletions), stored.deleted)
    state.tally.chunks_written += stored.chunks_written


async def open_scope(
    connection: db.Connection, workspace: Workspace, resources: Resources
) -> Scope:
    """The scope of a transaction that writes to every generation with rows."""
    generations = await following(connection, workspace.workspace_id)
    return Scope(
        connection,
        workspace.workspace_id,
        workspace.source,
        generations,
        resources.encoder,
        resources.chunkers,
    )


def _find_places(state: ImportState, records: Sequence[RawRecord]) -> list[ChannelRow]:
    """Give every folder of a Slack batch its channel; returns channels nobody lists."""
    if state.workspace.source is not Source.SLACK:
        return []
    added: list[ChannelRow] = []
    for file_name in {record.file_name for record in records}:
        state.tally.add_file(file_name)
    for folder in dict.fromkeys(record.folder for record in records):
        if folder not in state.places:
            added += _add_place(state, folder)
    return added


def _add_place(state: ImportState, folder: str) -> list[ChannelRow]:
    added: list[ChannelRow] = []
    channel_id = state.folders.channel_id(folder)
    if channel_id is None:
        channel_id = storable_id(folder)
        added.append(ChannelRow(channel_id, one_line(folder), ChannelKind.PRIVATE, False, ""))
        state.folders.add(folder, channel_id)
        state.tally.private_folders.append(channel_id)
    channel = state.directory.channels.get(channel_id)
    state.places[folder] = Place(
        team_id=state.workspace.team_id,
        channel_id=channel_id,
        channel_name=channel.name if channel else one_line(folder),
        directory=state.directory,
        index_bots=state.workspace.index_bots,
    )
    return added


def _line_channels(state: ImportState, messages: Iterable[IncomingMessage]) -> list[ChannelRow]:
    """Channels of JSON lines that nobody lists.

    Lines without a channels.json are one public set. Beside a channels.json, a channel that it
    does not list may be anything, hence private.
    """
    if state.workspace.source is Source.SLACK:
        return []
    added: list[ChannelRow] = []
    kind = ChannelKind.PRIVATE if state.has_listing else ChannelKind.PUBLIC
    for message in messages:
        known = message.channel_id in state.channel_ids
        if not known and state.folders.channel_id(message.channel_id) is None:
            added.append(ChannelRow(message.channel_id, message.channel_name, kind, False, ""))
            if state.has_listing:
                state.tally.private_folders.append(message.channel_id)
        state.channel_ids.add(message.channel_id)
    return added


def _guests(state: ImportState, messages: Iterable[IncomingMessage]) -> list[PersonRow]:
    """Authors whom only their messages name, each once, so that they are found by name."""
    guests: dict[str, PersonRow] = {}
    for message in messages:
        author_id = message.author_id
        if not author_id or not message.author_name or author_id in state.guest_ids:
            continue
        known = state.directory.people.get(author_id)
        if known is None or known.person_id != author_id:
            guests.setdefault(author_id, guest_of(message))
    return list(guests.values())


def guest_of(message: IncomingMessage) -> PersonRow:
    """An author whom only a message names."""
    return PersonRow(
        person_id=message.author_id,
        display_name=message.author_name,
        real_name="",
        handle="",
        team_id=message.author_team_id,
        is_bot=message.is_bot,
        is_deactivated=False,
        in_directory=False,
    )


def _count(tally: Tally, batch: ReadBatch, received: int) -> None:
    tally.received += received
    tally.nul_records += batch.nul_records
    for message in batch.messages:
        tally.add_message(message)
    for skipped, file_name in batch.skipped:
        tally.add_skipped(skipped, file_name)
