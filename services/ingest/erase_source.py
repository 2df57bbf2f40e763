"""EraseSource: deletes one document from every generation, for ever."""

from __future__ import annotations

from dataclasses import dataclass

from services.ingest.audit import AuditEvent, record_audit
from services.ingest.forget_sources import Forgotten, forget_sources
from services.ingest.resources import Resources
from services.ingest.workspaces import changing, read_workspace
from services.runtime import sql
from services.runtime.errors import invalid

_STATEMENTS = sql.load("services.ingest", "documents.sql")


@dataclass(frozen=True)
class Erasure:
    """Which document of which collection, and who asks."""

    workspace_id: str
    collection: str
    uri: str
    actor: str = ""


async def erase_source(resources: Resources, erasure: Erasure) -> Forgotten:
    """Erase it and remember that it is erased: no later build takes it again.

    The same again finds nothing. Raises CallError
    WORKSPACE_NOT_FOUND, INVALID_ARGUMENT.
    """
    if not erasure.uri or not erasure.collection:
        raise invalid("uri", "must name a document, and collection its collection")
    key = {
        "workspace_id": erasure.workspace_id,
        "collection": erasure.collection,
        "uri": erasure.uri,
    }
    async with changing(resources.pool, erasure.workspace_id) as connection:
        await read_workspace(connection, erasure.workspace_id)
        await connection.execute(_STATEMENTS["save_tombstone"], key)
        held = await forget_sources(connection, erasure.workspace_id, erasure.collection)
        event = AuditEvent(
            "source_erased", erasure.actor, "", {"generations": list(held.generation_ids)}
        )
        await record_audit(connection, erasure.workspace_id, event)
    return held
