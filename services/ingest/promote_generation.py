"""PromoteGeneration: makes a complete generation the serving one; also the way back."""

from __future__ import annotations

from collections.abc import Sequence

import grpc

from recall.error.v1 import error_pb2
from services.ingest.generations import (
    Generation,
    count_chunks,
    count_gaps,
    read_generations,
    start_serving,
)
from services.ingest.resources import Resources
from services.ingest.workspaces import changing, read_workspace
from services.runtime import db
from services.runtime.errors import CallError

PROMOTABLE = ("building", "validating", "ready")


async def promote_generation(
    resources: Resources, workspace_id: str, generation_id: str
) -> Sequence[str]:
    """Make a generation active; the active one becomes ready and keeps following messages.

    Returns the generations retired by it, whose rows are to be cleared. A generation that is
    active already stays so. Raises CallError WORKSPACE_NOT_FOUND, GENERATION_NOT_FOUND, or
    GENERATION_NOT_READY with what is missing.
    """
    async with changing(resources.pool, workspace_id) as connection:
        await read_workspace(connection, workspace_id)
        generation = await _read(connection, workspace_id, generation_id)
        if generation.state == "active":
            return []
        if generation.state not in PROMOTABLE:
            raise _not_ready(generation, f"it is {generation.state}. Build a new one.")
        await _check(connection, generation)
        return await start_serving(connection, generation)


async def _read(connection: db.Connection, workspace_id: str, generation_id: str) -> Generation:
    for generation in await read_generations(connection, workspace_id):
        if generation.generation_id == generation_id:
            return generation
    raise CallError(
        grpc.StatusCode.NOT_FOUND,
        error_pb2.ERROR_REASON_GENERATION_NOT_FOUND,
        f"Workspace {workspace_id!r} has no generation {generation_id!r}. "
        "`recall generations list` names them.",
        metadata={"generation_id": generation_id},
    )


async def _check(connection: db.Connection, generation: Generation) -> None:
    gaps = await count_gaps(connection, generation)
    if gaps:
        raise _not_ready(
            generation,
            f"{gaps.messages_without_chunk} messages have no chunk and "
            f"{gaps.chunks_without_rows} chunks are not indexed yet. Wait until "
            "`recall generations list` shows it complete; `recall generations build` again "
            "resumes it.",
        )
    counts = await count_chunks(connection, generation)
    if counts.without_vector:
        raise _not_ready(
            generation,
            f"{counts.without_vector} of {counts.chunks} chunks have no vector yet. Wait for the "
            "embedding worker; `recall status` shows how far it is.",
        )


def _not_ready(generation: Generation, why: str) -> CallError:
    return CallError(
        grpc.StatusCode.FAILED_PRECONDITION,
        error_pb2.ERROR_REASON_GENERATION_NOT_READY,
        f"Generation {generation.generation_id} can not serve: {why}",
        metadata={"generation_id": generation.generation_id},
    )
