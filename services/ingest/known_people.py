"""People as events and directories tell of them."""

from __future__ import annotations

from services.ingest.directory_store import save_people
from services.ingest.listing import PersonRow
from services.ingest.membership import tell
from services.ingest.rendering import ask_to_render
from services.runtime import db, sql

_STATEMENTS = sql.load("services.ingest", "events.sql")


async def save_person(connection: db.Connection, workspace_id: str, person: PersonRow) -> None:
    """Store what is known of a person now; chunks get a new name by a job of their own.

    Watchers of memberships hear of somebody who was deactivated or is back.
    """
    before = await _read_person(connection, workspace_id, person.person_id)
    if person == before:
        return
    await save_people(connection, workspace_id, [person])
    if before is None or before.is_deactivated != person.is_deactivated:
        await tell(connection, workspace_id, person.person_id)
    if before is None or before.display_name != person.display_name or not before.in_directory:
        await ask_to_render(connection, workspace_id, person_id=person.person_id)


async def _read_person(
    connection: db.Connection, workspace_id: str, person_id: str
) -> PersonRow | None:
    parameters = {"workspace_id": workspace_id, "ids": [person_id]}
    row = await db.fetch_one(connection, _STATEMENTS["mentioned_people"], parameters)
    return PersonRow(*row) if row else None
