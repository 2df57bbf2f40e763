"""Takes messages out of the index: for good when they were deleted, or while bots are off."""

from __future__ import annotations

from collections.abc import Collection

from services.ingest.store import bury, remove_rows
from services.ingest.thread_index import Scope, Written, drop_chunks_of, index_threads, settle
from services.runtime import db, sql

BOT_MESSAGES_AT_ONCE = 500

_STATEMENTS = sql.load("services.ingest", "messages.sql")


async def delete_messages(scope: Scope, message_ids: Collection[str]) -> int:
    """Delete messages and everything derived from them, and leave tombstones.

    Neither a delayed event nor an older archive brings them back. Replies to a deleted root stay.
    Returns how many had no tombstone yet.
    """
    newly_deleted = await bury(scope.connection, scope.workspace_id, message_ids)
    await remove_messages(scope, message_ids)
    return len(newly_deleted)


async def remove_messages(scope: Scope, message_ids: Collection[str]) -> None:
    """Remove messages and everything derived from them; they may be imported again."""
    written = Written()
    roots = await drop_chunks_of(scope, message_ids, written)
    roots |= await remove_rows(scope, message_ids)
    await index_threads(scope, roots, written)
    await settle(scope, written)


async def remove_some_bot_messages(scope: Scope) -> int:
    """Remove up to 500 bot messages; returns how many there were."""
    rows = await db.fetch_all(
        scope.connection,
        _STATEMENTS["some_bot_messages"],
        {"workspace_id": scope.workspace_id, "limit": BOT_MESSAGES_AT_ONCE},
    )
    await remove_messages(scope, [row[0] for row in rows])
    return len(rows)
