"""What one question may read: the context's channels, narrowed by the filters.

Names are looked up among what the asker may read and nowhere else. So a channel that may not be
read is answered exactly like one that does not exist, and so is a person who writes only there;
the reason repeats what was typed and nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from services.corpus import Filter, QueryContext
from services.runtime import db, sql

STATEMENTS = sql.load("services.retrieve", "scope.sql")


@dataclass(frozen=True)
class Scope:
    """The readable part. ``author_ids`` None means everybody; ``posted_before`` is open."""

    context: QueryContext
    channel_ids: tuple[str, ...]
    author_ids: tuple[str, ...] | None
    posted_after: datetime | None
    posted_before: datetime | None

    def parameters(self) -> dict[str, Any]:
        """The filters as the statements name them."""
        return {
            "workspace_id": self.context.workspace_id,
            "source": self.context.source.value,
            "channel_ids": list(self.channel_ids),
            "author_ids": None if self.author_ids is None else list(self.author_ids),
            "posted_after": self.posted_after,
            "posted_before": self.posted_before,
        }


@dataclass(frozen=True)
class Unresolved:
    """A filter names nothing that the asker may read."""

    reason: str


async def resolve_scope(
    connection: db.Connection, context: QueryContext, narrowing: Filter
) -> Scope | Unresolved:
    """The scope of a filter under a context."""
    channel_ids = context.channel_ids
    if narrowing.in_channel:
        channel_ids = await _named(connection, "channels_named", context, narrowing.in_channel)
        if not channel_ids:
            return Unresolved(f"There is no channel “{narrowing.in_channel}” that you can read.")
    author_ids = None
    if narrowing.author:
        author_ids = await _authors(connection, context, narrowing.author)
        if not author_ids:
            return Unresolved(f"There is no message by “{narrowing.author}” that you can read.")
    return Scope(context, channel_ids, author_ids, narrowing.posted_after, narrowing.posted_before)


async def _authors(connection: db.Connection, context: QueryContext, name: str) -> tuple[str, ...]:
    people = await _named(connection, "people_named", context, name)
    return people or await _named(connection, "authors_named", context, name)


async def _named(
    connection: db.Connection, statement: str, context: QueryContext, name: str
) -> tuple[str, ...]:
    parameters = {
        "workspace_id": context.workspace_id,
        "channel_ids": list(context.channel_ids),
        "name": name,
    }
    rows = await db.fetch_all(connection, STATEMENTS[statement], parameters)
    return tuple(row[0] for row in rows)
