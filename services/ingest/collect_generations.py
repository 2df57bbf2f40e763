"""CollectGenerations: deletes the rows of generations that nobody can go back to."""

from __future__ import annotations

from dataclasses import dataclass

import grpc

from recall.error.v1 import error_pb2
from services.ingest.audit import AuditEvent, record_audit
from services.ingest.clear_generation import clear_generation, forget_unused_embedders
from services.ingest.fail_generation import fail_generation
from services.ingest.resources import Resources
from services.ingest.serving import read_one
from services.ingest.workspaces import changing, read_workspace
from services.runtime import db, sql
from services.runtime.errors import CallError

_STATEMENTS = sql.load("services.ingest", "lifecycle.sql")


@dataclass(frozen=True)
class Collection:
    """Whose generations to collect; ``given_up_id`` is one that nobody waits for any more."""

    workspace_id: str
    actor: str = ""
    given_up_id: str = ""


async def collect_generations(resources: Resources, collection: Collection) -> list[str]:
    """Retire what stopped serving over 30 minutes ago and is not the way back; clear what ended.

    What serves, the one before it, and what is being built or waits for its promotion stay, but
    for the one that is given up. Cached vectors of embedders that no generation uses go too.
    Returns the ids of all generations that hold no rows any more. Raises CallError
    WORKSPACE_NOT_FOUND, GENERATION_NOT_FOUND, or GENERATION_NOT_READY for giving up what serves.
    """
    workspace_id = collection.workspace_id
    async with changing(resources.pool, workspace_id) as connection:
        await read_workspace(connection, workspace_id)
        if collection.given_up_id:
            await _give_up(connection, collection)
        rows = await db.fetch_all(
            connection, _STATEMENTS["retire_left"], {"workspace_id": workspace_id}
        )
        for generation_id, is_news in rows:
            if is_news:
                event = AuditEvent("generation_retired", collection.actor, generation_id)
                await record_audit(connection, workspace_id, event)
    ended = [row[0] for row in rows]
    for generation_id in ended:
        await clear_generation(resources, workspace_id, generation_id)
    await forget_unused_embedders(resources, workspace_id)
    return ended


async def _give_up(connection: db.Connection, collection: Collection) -> None:
    generation = await read_one(connection, collection.workspace_id, collection.given_up_id)
    if generation.state == "active":
        raise CallError(
            grpc.StatusCode.FAILED_PRECONDITION,
            error_pb2.ERROR_REASON_GENERATION_NOT_READY,
            f"Generation {generation.generation_id} serves. Roll back or promote another first.",
            metadata={"generation_id": generation.generation_id},
        )
    await fail_generation(
        connection,
        collection.workspace_id,
        collection.given_up_id,
        f"given up by {collection.actor}",
        collection.actor,
    )
