"""Gives a generation up: it says why, and what serves is untouched."""

from __future__ import annotations

from services.ingest.audit import AuditEvent, record_audit
from services.runtime import db, sql

REASON_CHARACTERS = 500

_STATEMENTS = sql.load("services.ingest", "lifecycle.sql")


async def fail_generation(
    connection: db.Connection, workspace_id: str, generation_id: str, reason: str, actor: str = ""
) -> None:
    """Mark a generation that does not serve as failed. Its rows are still to be cleared.

    ``reason`` is for a person and holds no text of a message or document; it is cut at 500
    characters. One that serves, or ended already, stays as it is.
    """
    bounded = reason[:REASON_CHARACTERS] or "unknown"
    key = {"workspace_id": workspace_id, "generation_id": generation_id}
    cursor = await connection.execute(_STATEMENTS["set_failed"], {**key, "reason": bounded})
    if cursor.rowcount:
        event = AuditEvent("generation_failed", actor, generation_id, {"reason": bounded})
        await record_audit(connection, workspace_id, event)
