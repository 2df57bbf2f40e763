"""From when on messages of a channel may be stored: retention, and purges that hold."""

from __future__ import annotations

from collections.abc import Iterable

from services.ingest.records import IncomingMessage
from services.ingest.versions import edit_order
from services.runtime import db, sql

_STATEMENTS = sql.load("services.ingest", "events.sql")


async def read_kept_after(connection: db.Connection, workspace_id: str, channel_id: str) -> str:
    """The ts up to which nothing of a channel may be stored; empty when everything may.

    It is the later of the workspace's retention limit and of the last purge of the channel that
    no new joining of the app has lifted. Whoever reads history asks Slack for nothing older.
    """
    parameters = {"workspace_id": workspace_id, "channel_id": channel_id}
    row = await db.fetch_one(connection, _STATEMENTS["kept_after"], parameters)
    return (row[0] or "") if row else ""


def still_kept(messages: Iterable[IncomingMessage], kept_after: str) -> list[IncomingMessage]:
    """The messages that may be stored. A ts is compared as two whole numbers."""
    limit = edit_order(kept_after, None)
    return [message for message in messages if edit_order(message.ts, None) > limit]
