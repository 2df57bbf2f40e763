"""From when on messages of a channel may be stored: retention, and purges that hold."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from services.ingest.records import IncomingMessage
from services.ingest.versions import edit_order
from services.runtime import db, sql

_STATEMENTS = sql.load("services.ingest", "events.sql")


async def read_kept_after(
    connection: db.Connection, workspace_id: str, channel_ids: Sequence[str]
) -> dict[str, str]:
    """The ts up to which nothing of a channel may be stored; empty when everything may.

    It is the later of the workspace's retention limit and of the last purge of the channel that
    no new joining of the app has lifted. Whoever reads history asks Slack for nothing older.
    """
    parameters = {"workspace_id": workspace_id, "channel_ids": list(channel_ids)}
    rows = await db.fetch_all(connection, _STATEMENTS["kept_after"], parameters)
    return {channel_id: kept_after or "" for channel_id, kept_after in rows}


def still_kept(
    messages: Iterable[IncomingMessage], kept_after: Mapping[str, str]
) -> list[IncomingMessage]:
    """The messages that may be stored, by the limits of their channels.

    A ts is compared as two whole numbers.
    """
    limits = {channel_id: edit_order(ts, None) for channel_id, ts in kept_after.items()}
    return [
        message
        for message in messages
        if edit_order(message.ts, None) > limits.get(message.channel_id, (0, 0))
    ]
