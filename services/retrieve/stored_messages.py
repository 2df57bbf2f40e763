"""Messages as their reader sees them: current names, links to where they stand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from itertools import accumulate

from psycopg.rows import TupleRow

from services.corpus import Message, QueryContext, Source
from services.retrieve.permalinks import permalink
from services.runtime import db, sql

# As many characters as the lexical arm indexes. Slack's own messages end at 40,000.
MAX_TEXT_CHARACTERS = 100_000
CUT_NOTE = " …(cut)"
# A reply of many long messages stays well under what a connection carries.
MAX_REPLY_BYTES = 16 * 1024 * 1024

STATEMENTS = sql.load("services.retrieve", "messages.sql")


@dataclass(frozen=True)
class StoredMessage:
    """A message, when it entered the index, and what it was taken from.

    ``source_uri`` is a document's URI, or the message's own id in chat; validity days are UTC.
    """

    message: Message
    indexed_at: datetime
    source_uri: str
    source_version: str
    source_sha256: str
    first_indexed_at: datetime
    valid_from: date | None = None
    valid_until: date | None = None


async def load_messages(
    connection: db.Connection,
    context: QueryContext,
    message_ids: Sequence[str],
    generation_id: str = "",
) -> list[StoredMessage]:
    """The messages that exist for the context, in the order of the ids, each once.

    Pieces of documents are those of the generation; without one, of the serving one.

    A text of more than 100,000 characters is cut and says so; its hash is the whole text's.
    """
    parameters = {
        "workspace_id": context.workspace_id,
        "source": context.source.value,
        "channel_ids": list(context.channel_ids),
        "message_ids": list(message_ids),
        "generation_id": generation_id,
        "text_characters": MAX_TEXT_CHARACTERS + 1,
    }
    name = "read_pieces" if context.source is Source.DOCUMENT else "read_messages"
    rows = await db.fetch_all(connection, STATEMENTS[name], parameters)
    found = {row[0]: _stored(row, context.workspace_id) for row in rows}
    return [found[wanted] for wanted in dict.fromkeys(message_ids) if wanted in found]


def fitting(messages: Sequence[Message]) -> list[Message]:
    """The first of the messages that one reply carries; one at least, if there is one."""
    total = accumulate(len(message.text.encode()) for message in messages)
    return [
        message
        for position, (message, size) in enumerate(zip(messages, total, strict=True))
        if position == 0 or size <= MAX_REPLY_BYTES
    ]


def _shown(text: str) -> str:
    return text if len(text) <= MAX_TEXT_CHARACTERS else text[:MAX_TEXT_CHARACTERS] + CUT_NOTE


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
        *provenance,
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
        text=_shown(text),
        thread_root_id=thread_root_id,
        permalink=permalink(message_id, thread_root_id, domain),
        content_sha256=content_sha256,
        is_bot=is_bot,
    )
    return StoredMessage(message, indexed_at, *provenance)
