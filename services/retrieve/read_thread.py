"""ReadThread: one thread in time order."""

from __future__ import annotations

from services.corpus import Message, QueryContext, Source
from services.retrieve.stored_messages import STATEMENTS, fitting, load_messages
from services.runtime import db
from services.runtime.errors import not_found

MAX_MESSAGES = 1_000


async def read_thread(pool: db.Pool, context: QueryContext, message_id: str) -> list[Message]:
    """The thread of a message, root first, then the replies; at most 1,000 or 16 MiB of text.
    Of a piece of a document: all of its pieces.

    Raises CallError NOT_FOUND, worded the same whether the thread does not exist or may not be
    read.
    """
    messages: list[Message] = []
    if context.channel_ids:
        async with db.reading(pool, context.workspace_id) as connection:
            messages = await _read(connection, context, message_id)
    if not messages:
        raise not_found(f"There is no message {message_id!r} that you can read.")
    return messages


async def _read(connection: db.Connection, context: QueryContext, message_id: str) -> list[Message]:
    parameters = {
        "workspace_id": context.workspace_id,
        "channel_ids": list(context.channel_ids),
        "message_id": message_id,
        "limit": MAX_MESSAGES,
    }
    name = "document_of" if context.source is Source.DOCUMENT else "thread_of"
    rows = await db.fetch_all(connection, STATEMENTS[name], parameters)
    stored = await load_messages(connection, context, [row[0] for row in rows])
    return fitting([found.message for found in stored])
