"""CollectGenerations: deletes the rows of generations that nobody can go back to."""

from __future__ import annotations

from services.ingest.audit import AuditEvent, record_audit
from services.ingest.clear_generation import clear_generation
from services.ingest.resources import Resources
from services.ingest.workspaces import changing, read_workspace
from services.runtime import db, sql

_STATEMENTS = sql.load("services.ingest", "lifecycle.sql")


async def collect_generations(
    resources: Resources, workspace_id: str, actor: str = ""
) -> list[str]:
    """Retire what stopped serving over 30 minutes ago and is not the way back; clear what ended.

    What serves, the one before it, and what is being built or waits for its promotion stay.
    Returns the ids of all generations that hold no rows any more. Raises CallError
    WORKSPACE_NOT_FOUND.
    """
    async with changing(resources.pool, workspace_id) as connection:
        await read_workspace(connection, workspace_id)
        rows = await db.fetch_all(
            connection, _STATEMENTS["retire_left"], {"workspace_id": workspace_id}
        )
        for generation_id, is_news in rows:
            if is_news:
                event = AuditEvent("generation_retired", actor, generation_id)
                await record_audit(connection, workspace_id, event)
    ended = [row[0] for row in rows]
    for generation_id in ended:
        await clear_generation(resources, workspace_id, generation_id)
    return ended
