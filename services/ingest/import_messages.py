"""ImportMessages: an archive's raw records to messages and chunks, batch by batch.

Each batch is one transaction, so a killed import loses at most one batch, and the same archive
again completes it. Two imports of one workspace take turns, a batch each.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

from services.corpus import Source
from services.ingest.build_generation import fill_generation
from services.ingest.chunkers import newest
from services.ingest.delete_messages import remove_some_bot_messages
from services.ingest.directory import archive_team
from services.ingest.directory_store import empty_channels, read_channels, save_listing
from services.ingest.generations import (
    ChunkCounts,
    Generation,
    NewGeneration,
    count_chunks,
    count_gaps,
    create_generation,
    following,
    in_state,
    refresh_statistics,
    set_filled,
)
from services.ingest.import_batch import ImportState, open_scope, write_records
from services.ingest.import_parts import (
    Entries,
    Header,
    LeftOut,
    Part,
    RawRecord,
    Records,
    batches,
    read_header,
)
from services.ingest.import_target import Target, check_same, find_target, target_notes
from services.ingest.listing import Folders, Listing, team_of_records
from services.ingest.promote_generation import serve_first
from services.ingest.resources import Resources
from services.ingest.tally import Report, Tally
from services.ingest.workspaces import Workspace, changing, create_workspace, set_index_bots
from services.runtime import db
from services.runtime.callers import Caller
from services.runtime.errors import invalid

# Batches after which the planner's statistics are refreshed: the 2nd, the 8th, the 32nd, ...
FIRST_REFRESH = 2
REFRESH_FACTOR = 4


async def import_messages(
    parts: AsyncIterator[Part], resources: Resources, caller: Caller
) -> AsyncIterator[Tally | Report]:
    """Import an archive: totals after each batch, then the report.

    Raises CallError INVALID_ARGUMENT for parts out of order, WORKSPACE_CONFLICT when the
    workspace holds another source or team.
    """
    header = await read_header(parts)
    tally = Tally()
    listing, first = await _read_listing(parts, header, tally)
    team = _team_of(listing, first) if header.source is Source.SLACK else ""
    target = await find_target(resources.queue_pool, caller, header, team)
    state = await _open(resources, header, target, listing, tally)
    refresh_at = FIRST_REFRESH
    async for number, batch in _numbered(batches(_with_first(first, parts))):
        await write_records(resources, state, batch)
        if number == refresh_at and tally.chunks_written:
            await refresh_statistics(resources.pool, target.workspace_id)
            refresh_at *= REFRESH_FACTOR
        yield tally
    yield await _finish(resources, header, target, state)


async def _numbered(
    items: AsyncIterator[list[RawRecord | LeftOut]],
) -> AsyncIterator[tuple[int, list[RawRecord | LeftOut]]]:
    number = 0
    async for item in items:
        number += 1
        yield number, item


async def _read_listing(
    parts: AsyncIterator[Part], header: Header, tally: Tally
) -> tuple[Listing, Records | None]:
    """The directory files, up to the first messages, which are handed back."""
    listing = Listing(header.source)
    async for part in parts:
        match part:
            case Entries(file, records):
                await asyncio.to_thread(listing.add, file, records)
            case LeftOut():
                tally.add_left_out(part)
            case Records():
                return listing, part
            case Header():
                raise invalid("header", "must come once, as the first part")
    return listing, None


def _team_of(listing: Listing, first: Records | None) -> str:
    """The team that the archive itself tells."""
    return archive_team(listing.people.values()) or team_of_records(first.records if first else ())


async def _with_first(first: Records | None, parts: AsyncIterator[Part]) -> AsyncIterator[Part]:
    if first is not None:
        yield first
    async for part in parts:
        yield part


async def _open(
    resources: Resources, header: Header, target: Target, listing: Listing, tally: Tally
) -> ImportState:
    """Create or check the workspace, write the directories, begin a generation if none serves."""
    async with changing(resources.pool, target.workspace_id) as connection:
        workspace = await create_workspace(
            connection, target.workspace_id, target.source, target.own_team()
        )
        check_same(target, workspace)
        if header.skip_bots is not None:
            await set_index_bots(connection, workspace.workspace_id, not header.skip_bots)
            workspace = replace(workspace, index_bots=not header.skip_bots)
        directory = await save_listing(connection, workspace.workspace_id, listing)
        channels = await read_channels(connection, workspace.workspace_id)
        await _ensure_generation(connection, workspace, header, resources)
    tally.entries_unreadable = listing.unreadable
    if not workspace.index_bots:
        await _remove_bot_messages(resources, workspace)
    folders = Folders(listing, channels)
    return ImportState(workspace, directory, folders, bool(listing.channels), tally)


async def _ensure_generation(
    connection: db.Connection, workspace: Workspace, header: Header, resources: Resources
) -> None:
    name = header.embedder or resources.embedders.default_name()
    if await following(connection, workspace.workspace_id):
        return
    new = NewGeneration(
        workspace.workspace_id,
        resources.new_generation_id(),
        workspace.source,
        resources.embedders.by_name(name).identity,
        chunker_version=newest(resources.chunkers),
    )
    await create_generation(connection, new)


async def _remove_bot_messages(resources: Resources, workspace: Workspace) -> None:
    """Remove what was imported before bots were switched off, a batch a transaction."""
    while True:
        async with changing(resources.pool, workspace.workspace_id) as connection:
            scope = await open_scope(connection, workspace, resources)
            if not await remove_some_bot_messages(scope):
                return


async def _finish(
    resources: Resources, header: Header, target: Target, state: ImportState
) -> Report:
    """Make a first generation active once its rows are complete; sum up."""
    workspace = state.workspace
    if state.tally.chunks_written:
        await refresh_statistics(resources.pool, workspace.workspace_id)
    created = await _serve_first(resources, workspace)
    async with changing(resources.pool, workspace.workspace_id) as connection:
        generations = await following(connection, workspace.workspace_id)
        serving = in_state(generations, "active")
        counts = await count_chunks(connection, serving) if serving else ChunkCounts(0, 0)
        empty = await empty_channels(connection, workspace.workspace_id)
    notes = [
        *target_notes(target, header, workspace),
        *_embedder_notes(header, serving),
        *_serving_notes(generations, serving),
    ]
    return Report(
        workspace_id=workspace.workspace_id,
        generation_id=serving.generation_id if serving else "",
        generation_created=created,
        tally=state.tally,
        empty_channels=empty,
        notes=[*notes, *state.tally.notes()],
        chunks_without_vector=counts.without_vector,
    )


async def _serve_first(resources: Resources, workspace: Workspace) -> bool:
    """Make the building generation active when none is. False when another serves already."""
    while True:
        async with changing(resources.pool, workspace.workspace_id) as connection:
            generations = await following(connection, workspace.workspace_id)
            building = in_state(generations, "building")
            if in_state(generations, "active") or building is None:
                return False
            if not await count_gaps(connection, building):
                await set_filled(connection, workspace.workspace_id, building.generation_id)
                return await serve_first(connection, resources, building)
        await fill_generation(resources, workspace, building.generation_id)


def _serving_notes(generations: list[Generation], serving: Generation | None) -> list[str]:
    if serving or not generations:
        return []
    generation_id = generations[0].generation_id
    return [
        f"Nothing serves yet: in production generation {generation_id} has to be validated, "
        "calibrated and promoted first (recall generations validate, recall calibrate, recall "
        "generations promote)."
    ]


def _embedder_notes(header: Header, serving: Generation | None) -> list[str]:
    if not serving or not header.embedder or header.embedder == serving.embedder:
        return []
    return [
        f"The serving generation keeps its embedder {serving.embedder}. For {header.embedder}: "
        f"recall generations build --embedder {header.embedder}, then promote it."
    ]
