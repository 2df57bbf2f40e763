"""Which workspace a team's deliveries belong to."""

from __future__ import annotations

from dataclasses import dataclass

from services.runtime import db, sql

_STATEMENTS = sql.load("services.ingest", "events.sql")


@dataclass(frozen=True)
class Installed:
    """A workspace with an installed app. ``team_id`` is the team in its message ids."""

    workspace_id: str
    team_id: str
    bot_user_id: str


async def installed_for(
    queue_pool: db.Pool, team_id: str, enterprise_id: str = ""
) -> Installed | None:
    """The workspace whose app hears a team: its own, else its organisation's; None without one."""
    async with db.across_tenants(queue_pool) as connection:
        row = await db.fetch_one(
            connection,
            _STATEMENTS["installation_of_team"],
            {"team_id": team_id, "enterprise_id": enterprise_id},
        )
    return Installed(*row) if row else None


async def was_installed_after(
    connection: db.Connection, workspace_id: str, event_seconds: int
) -> bool:
    """Whether the app was installed anew after the second in which something happened."""
    key = {"workspace_id": workspace_id, "event_time": event_seconds}
    row = await db.fetch_one(connection, _STATEMENTS["was_installed_after"], key)
    return bool(row and row[0])


async def hold_installation(connection: db.Connection, workspace_id: str) -> bool:
    """Whether the app is installed still; if so, it stays until this transaction ends."""
    key = {"workspace_id": workspace_id}
    return await db.fetch_one(connection, _STATEMENTS["hold_installation"], key) is not None
