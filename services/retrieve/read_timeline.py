"""ReadTimeline: messages in time order, a page at a time.

Pages follow (posted_at, message_id), so a message that arrives or goes between two pages moves
no other: none is read twice, none is missed.
"""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from services.corpus import Filter, Message, QueryContext
from services.retrieve.context import NOTHING_READABLE
from services.retrieve.scope import Scope, Unresolved, resolve_scope
from services.retrieve.stored_messages import STATEMENTS, fitting, load_messages
from services.runtime import db
from services.runtime.errors import invalid

DEFAULT_PAGE_SIZE = 200
MAX_PAGE_SIZE = 500
NOTHING_POSTED = "No message that you can read fits these filters."


@dataclass(frozen=True)
class PageRequest:
    """Which page: ``size`` 0 means 200; ``token`` is the previous page's, empty for the first."""

    size: int = 0
    token: str = ""
    newest_first: bool = False


@dataclass(frozen=True)
class Page:
    """One page. ``reason`` says why there is nothing at all; ``newest_at`` knows no filter."""

    messages: tuple[Message, ...] = ()
    next_token: str = ""
    reason: str = ""
    newest_at: datetime | None = None


async def read_timeline(
    pool: db.Pool, context: QueryContext, narrowing: Filter, wanted: PageRequest
) -> Page:
    """A page of what the context may read; a shorter one where its texts exceed 16 MiB.

    Raises CallError INVALID_ARGUMENT for a size out of range or a token of another timeline.
    """
    size = _size(wanted.size)
    last_posted_at, last_message_id = _last(wanted)
    if not context.channel_ids:
        return Page(reason=NOTHING_READABLE)
    async with db.reading(pool, context.workspace_id) as connection:
        newest_at = await _newest_at(connection, context)
        scope = await resolve_scope(connection, context, narrowing)
        if isinstance(scope, Unresolved):
            return Page(reason=scope.reason, newest_at=newest_at)
        last = {"last_posted_at": last_posted_at, "last_message_id": last_message_id}
        parameters = scope.parameters() | last | {"limit": size + 1}
        name = "timeline_backwards" if wanted.newest_first else "timeline_forwards"
        rows = await db.fetch_all(connection, STATEMENTS[name], parameters)
        messages = await _load(connection, scope, [row[0] for row in rows[:size]])
    is_last = len(messages) == len(rows)
    return Page(
        messages=messages,
        next_token="" if is_last else _token(messages[-1], wanted.newest_first),
        reason="" if messages or wanted.token else NOTHING_POSTED,
        newest_at=newest_at,
    )


async def _load(
    connection: db.Connection, scope: Scope, message_ids: list[str]
) -> tuple[Message, ...]:
    stored = await load_messages(connection, scope.context, message_ids)
    return tuple(fitting([found.message for found in stored]))


async def _newest_at(connection: db.Connection, context: QueryContext) -> datetime | None:
    parameters: dict[str, Any] = {
        "workspace_id": context.workspace_id,
        "source": context.source.value,
        "channel_ids": list(context.channel_ids),
    }
    row = await db.fetch_one(connection, STATEMENTS["newest_readable"], parameters)
    return row[0] if row else None


def _size(asked: int) -> int:
    if not 0 <= asked <= MAX_PAGE_SIZE:
        raise invalid("page_size", f"is {asked}; must be 1 to {MAX_PAGE_SIZE}, or 0 for 200")
    return asked or DEFAULT_PAGE_SIZE


def _token(last: Message, newest_first: bool) -> str:
    position = [last.posted_at.isoformat(), last.message_id, newest_first]
    return base64.urlsafe_b64encode(json.dumps(position).encode()).decode()


def _last(wanted: PageRequest) -> tuple[datetime | None, str]:
    """Where the previous page ended; before everything for the first page."""
    if not wanted.token:
        return None, ""
    try:
        posted_at, message_id, newest_first = json.loads(
            base64.b64decode(wanted.token, altchars=b"-_", validate=True)
        )
        last = datetime.fromisoformat(posted_at)
        # A NUL or half a character would be refused by the database only.
        valid = last.tzinfo is not None and "\0" not in message_id.encode().decode()
    except (ValueError, TypeError, AttributeError, RecursionError):
        valid = False
    if not valid or newest_first is not wanted.newest_first:
        raise invalid("page_token", "is not one of this timeline; begin again without a token")
    return last, message_id
