"""The audit: who changed what a workspace serves. Ids and numbers, never text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from services.runtime import db, sql

_STATEMENTS = sql.load("services.ingest", "audit.sql")


@dataclass(frozen=True)
class AuditEvent:
    """One event, such as "generation_promoted". ``details`` is what JSON can hold."""

    kind: str
    actor: str
    generation_id: str = ""
    details: Mapping[str, object] = field(default_factory=dict)


async def record_audit(connection: db.Connection, workspace_id: str, event: AuditEvent) -> None:
    """Write an event in the transaction of what it is about, so that both or neither stay."""
    await connection.execute(
        _STATEMENTS["record_audit"],
        {
            "workspace_id": workspace_id,
            "kind": event.kind,
            "actor": event.actor,
            "generation_id": event.generation_id,
            "details": json.dumps(dict(event.details)),
        },
    )
