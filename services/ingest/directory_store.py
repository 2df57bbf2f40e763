"""People and channels in the database: only what differs is written."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict

from services.ingest.directory import Channel, ChannelKind, Directory, Person, make_directory
from services.ingest.listing import ChannelRow, Listing, PersonRow
from services.runtime import db, sql

_STATEMENTS = sql.load("services.ingest", "directory.sql")


async def read_channels(connection: db.Connection, workspace_id: str) -> list[ChannelRow]:
    """The workspace's channels by name."""
    rows = await db.fetch_all(
        connection, _STATEMENTS["read_channels"], {"workspace_id": workspace_id}
    )
    return [ChannelRow(*row) for row in rows]


async def read_people(connection: db.Connection, workspace_id: str) -> list[PersonRow]:
    """Everybody the workspace knows."""
    rows = await db.fetch_all(
        connection, _STATEMENTS["read_people"], {"workspace_id": workspace_id}
    )
    return [PersonRow(*row) for row in rows]


async def save_listing(connection: db.Connection, workspace_id: str, listing: Listing) -> Directory:
    """Write what the archive's directory files say anew; returns all current names."""
    people = await read_people(connection, workspace_id)
    channels = await read_channels(connection, workspace_id)
    directory = directory_of(listing, people, channels)
    known_people = set(people)
    known_channels = set(channels)
    await save_people(connection, workspace_id, set(listing.person_rows()) - known_people)
    await save_channels(
        connection, workspace_id, set(listing.channel_rows(directory)) - known_channels
    )
    for channel_id, person_ids in listing.members.items():
        await _save_members(connection, workspace_id, channel_id, person_ids)
    return directory


def directory_of(
    listing: Listing, people: Iterable[PersonRow], channels: Iterable[ChannelRow]
) -> Directory:
    """Current names: the archive's, and what is stored where the archive is silent.

    Guests known from messages only are left out: their records carry their names.
    """
    stored_people = {
        row.person_id: Person(
            row.person_id,
            row.display_name,
            row.real_name,
            row.team_id,
            row.is_bot,
            row.is_deactivated,
        )
        for row in people
        if row.in_directory
    }
    stored_channels = {
        row.channel_id: Channel(row.channel_id, row.name, ChannelKind(row.kind), row.is_archived)
        for row in channels
    }
    return make_directory(
        (stored_people | listing.people).values(), (stored_channels | listing.channels).values()
    )


async def save_people(
    connection: db.Connection, workspace_id: str, people: Iterable[PersonRow]
) -> None:
    """Store what a directory says of people; they are in it from now on."""
    await _save(connection, "save_people", workspace_id, people)


async def save_channels(
    connection: db.Connection, workspace_id: str, channels: Iterable[ChannelRow]
) -> None:
    """Store what a directory says of channels."""
    await _save(connection, "save_channels", workspace_id, channels)


async def add_guests(
    connection: db.Connection, workspace_id: str, guests: Iterable[PersonRow]
) -> None:
    """Add authors that only their messages name; whoever is known stays as is."""
    await _save(connection, "add_guest", workspace_id, guests)


async def add_channel(connection: db.Connection, workspace_id: str, channel: ChannelRow) -> None:
    """Add a channel that no directory file lists; a known one stays as is."""
    await _save(connection, "add_channel", workspace_id, [channel])


async def empty_channels(connection: db.Connection, workspace_id: str) -> list[str]:
    """Names of channels without a stored message."""
    rows = await db.fetch_all(
        connection, _STATEMENTS["empty_channels"], {"workspace_id": workspace_id}
    )
    return [row[0] for row in rows]


async def _save_members(
    connection: db.Connection, workspace_id: str, channel_id: str, person_ids: tuple[str, ...]
) -> None:
    parameters = {
        "workspace_id": workspace_id,
        "channel_id": channel_id,
        "person_ids": list(person_ids),
    }
    await connection.execute(_STATEMENTS["add_members"], parameters)
    await connection.execute(_STATEMENTS["remove_other_members"], parameters)


async def _save(
    connection: db.Connection,
    statement: str,
    workspace_id: str,
    rows: Iterable[PersonRow | ChannelRow],
) -> None:
    parameters = [{"workspace_id": workspace_id, **asdict(row)} for row in rows]
    if parameters:
        async with connection.cursor() as cursor:
            await cursor.executemany(_STATEMENTS[statement], parameters)
