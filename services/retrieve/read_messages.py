"""ReadMessages: the current text of messages by id."""

from __future__ import annotations

from collections.abc import Sequence

from services.corpus import Message, QueryContext
from services.retrieve.stored_messages import load_messages
from services.runtime import db
from services.runtime.errors import invalid

MAX_IDS = 200


async def read_messages(
    pool: db.Pool, context: QueryContext, message_ids: Sequence[str]
) -> list[Message]:
    """The messages in the order of the ids; what is deleted, unknown or unreadable is left out.

    Raises CallError INVALID_ARGUMENT for more than 200 ids.
    """
    if len(message_ids) > MAX_IDS:
        raise invalid("message_ids", f"holds {len(message_ids)} ids; at most {MAX_IDS} a call")
    if not context.channel_ids or not message_ids:
        return []
    async with db.reading(pool, context.workspace_id) as connection:
        stored = await load_messages(connection, context, message_ids)
    return [found.message for found in stored]
