"""Which generation of a collection, or of the messages, serves: changing it in one step."""

from __future__ import annotations

from dataclasses import dataclass

import grpc

from recall.error.v1 import error_pb2
from services.ingest.audit import AuditEvent, record_audit
from services.ingest.generations import Generation, read_generations
from services.runtime import db, sql
from services.runtime.errors import CallError

_STATEMENTS = sql.load("services.ingest", "lifecycle.sql")


@dataclass(frozen=True)
class Served:
    """What a change of the serving generation did.

    ``replaced`` is the generation that served before, empty when none did. ``retired`` are those
    that stopped serving over 30 minutes ago: their rows are still to be cleared.
    """

    replaced: str = ""
    retired: tuple[str, ...] = ()


async def read_one(connection: db.Connection, workspace_id: str, generation_id: str) -> Generation:
    """A generation of the workspace. Raises CallError GENERATION_NOT_FOUND."""
    for generation in await read_generations(connection, workspace_id):
        if generation.generation_id == generation_id:
            return generation
    raise no_such_generation(workspace_id, generation_id)


def no_such_generation(workspace_id: str, generation_id: str) -> CallError:
    """GENERATION_NOT_FOUND with where to look."""
    return CallError(
        grpc.StatusCode.NOT_FOUND,
        error_pb2.ERROR_REASON_GENERATION_NOT_FOUND,
        f"Workspace {workspace_id!r} has no generation {generation_id!r}. "
        "`recall generations list` names them.",
        metadata={"generation_id": generation_id},
    )


def not_ready(generation: Generation, why: str) -> CallError:
    """GENERATION_NOT_READY with what is missing and what to do."""
    return CallError(
        grpc.StatusCode.FAILED_PRECONDITION,
        error_pb2.ERROR_REASON_GENERATION_NOT_READY,
        f"Generation {generation.generation_id} can not serve: {why}",
        metadata={"generation_id": generation.generation_id},
    )


async def start_serving(
    connection: db.Connection, generation: Generation, event: AuditEvent
) -> Served:
    """Make a generation active; the active one becomes ready. Audited in the same transaction."""
    scope = {
        **generation.key,
        "source": generation.source,
        "collection": generation.collection,
    }
    retired = await db.fetch_all(connection, _STATEMENTS["retire_superseded"], scope)
    replaced = await db.fetch_one(connection, _STATEMENTS["supersede_active"], scope)
    await connection.execute(_STATEMENTS["set_serving"], generation.key)
    served = Served(replaced[0] if replaced else "", tuple(row[0] for row in retired))
    details = {**event.details, "replaced": served.replaced, "retired": list(served.retired)}
    await record_audit(
        connection,
        generation.workspace_id,
        AuditEvent(event.kind, event.actor, generation.generation_id, details),
    )
    return served
