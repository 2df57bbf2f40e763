"""Messages as their reader sees them: current names, links to where they stand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from psycopg.rows import TupleRow

from services.corpus import Message, QueryContext
from services.retrieve.permalinks import permalink
from services.runtime import db, sql

STATEMENTS = sql.load("services.retrieve", "messages.sql")


@dataclass(frozen=True)
class StoredMessage:
    """A message and when it entered the index."""

    message: Message
    indexed_at: datetime


async def load_messages(
    connection: db.Connection, context: QueryContext, message_ids: Sequence[str]
) -> list[StoredMessage]:
    """The messages that exist for the context, in the order of the ids, each once."""
    parameters = {
        "workspace_id": context.workspace_id,
        "source": context.source.value,
        "channel_ids": list(context.channel_ids),
        "message_ids": list(message_ids),
    }
    rows = await db.fetch_all(connection, STATEMENTS["read_messages"], parameters)
    found = {row[0]: _stored(row, context.workspace_id) for row in rows}
    return [found[wanted] for wanted in dict.fromkeys(message_ids) if wanted in found]


def _stored(row: TupleRow, workspace_id: str) -> StoredMessage:
    (
        message_id,
        channel_id,
        channel_name,
        author_id,
        author_name,
        posted_at,
        edited_at,
        text,
        thread_root_id,
        content_sha256,
        is_bot,
        domain,
        indexed_at,
    ) = row
    message = Message(
        message_id=message_id,
        workspace_id=workspace_id,
        channel_id=channel_id,
        channel_name=channel_name,
        author_id=author_id,
        author_name=author_name,
        posted_at=posted_at,
        edited_at=edited_at,
        text=text,
        thread_root_id=thread_root_id,
        permalink=permalink(message_id, thread_root_id, domain),
        content_sha256=content_sha256,
        is_bot=is_bot,
    )
    return StoredMessage(message, indexed_at)
