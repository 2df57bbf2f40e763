"""The names that a few raw records need, read by the ids that stand in them."""

from __future__ import annotations

import re
from collections.abc import Iterable

from services.corpus import Source
from services.ingest.directory import Directory
from services.ingest.directory_store import directory_of
from services.ingest.listing import ChannelRow, Listing, PersonRow
from services.runtime import db, sql

# Slack's ids: capitals and digits. A word in capitals that is none costs one look-up.
_ID = re.compile(rb"[A-Z][A-Z0-9]{1,30}")

_STATEMENTS = sql.load("services.ingest", "events.sql")


async def mentioned_directory(
    connection: db.Connection, workspace_id: str, raw_records: Iterable[bytes]
) -> Directory:
    """Current names of every person and channel whose id stands in the records."""
    ids = sorted({found.decode() for raw in raw_records for found in _ID.findall(raw)})
    parameters = {"workspace_id": workspace_id, "ids": ids}
    people = await db.fetch_all(connection, _STATEMENTS["mentioned_people"], parameters)
    channels = await db.fetch_all(connection, _STATEMENTS["mentioned_channels"], parameters)
    return directory_of(
        Listing(Source.SLACK),
        (PersonRow(*row) for row in people),
        (ChannelRow(*row) for row in channels),
    )
