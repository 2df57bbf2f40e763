"""Who is in which channel, and word of each change to whoever watches."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from services.runtime import db, sql

CHANNEL = "recall_membership"

_STATEMENTS = sql.load("services.ingest", "events.sql")


@dataclass(frozen=True)
class Membership:
    """A person in a channel. ``ts`` is when they joined, or left, by Slack's clock."""

    workspace_id: str
    channel_id: str
    person_id: str
    ts: str


async def add_member(connection: db.Connection, joined: Membership) -> None:
    """Somebody joined; watchers hear of it when the transaction commits."""
    await connection.execute(_STATEMENTS["add_member"], asdict(joined))
    await tell(connection, joined.workspace_id, joined.person_id)


async def remove_member(connection: db.Connection, left: Membership) -> bool:
    """Somebody left. False: they joined again later and are in the channel."""
    await connection.execute(_STATEMENTS["remove_member"], asdict(left))
    await tell(connection, left.workspace_id, left.person_id)
    return await db.fetch_one(connection, _STATEMENTS["is_member"], asdict(left)) is None


async def tell(connection: db.Connection, workspace_id: str, person_id: str = "") -> None:
    """Tell watchers that a person's channels changed; without a person, everybody's."""
    await connection.execute(
        _STATEMENTS["tell_membership"], {"workspace_id": workspace_id, "person_id": person_id}
    )
