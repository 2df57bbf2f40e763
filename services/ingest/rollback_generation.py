"""RollbackGeneration: the generation that served before serves again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import grpc

from recall.error.v1 import error_pb2
from services.ingest.audit import AuditEvent
from services.ingest.generations import Generation, in_state, read_generations
from services.ingest.resources import Resources
from services.ingest.serving import Served, start_serving
from services.ingest.workspaces import changing, read_workspace
from services.runtime.errors import CallError


@dataclass(frozen=True)
class Rollback:
    """Whose serving generation to replace; ``collection`` is empty for chat."""

    workspace_id: str
    collection: str = ""
    actor: str = ""
    reason: str = ""


async def rollback_generation(resources: Resources, rollback: Rollback) -> tuple[str, Served]:
    """Swap the serving generation and the one that served before it, in one transaction.

    Never refused for want of a certificate: it is the way out of a bad promotion. The audit holds
    the standing of the calibration all the same. Returns the id of what serves now. Raises
    CallError WORKSPACE_NOT_FOUND, or GENERATION_NOT_FOUND when nothing served before.
    """
    async with changing(resources.pool, rollback.workspace_id) as connection:
        await read_workspace(connection, rollback.workspace_id)
        generations = [
            generation
            for generation in await read_generations(connection, rollback.workspace_id)
            if generation.collection == rollback.collection
        ]
        target = previous(generations)
        if target is None or in_state(generations, "active") is None:
            raise _nothing_before(rollback)
        details = {"reason": rollback.reason, "calibration_status": target.calibration_status}
        event = AuditEvent("generation_rolled_back", rollback.actor, details=details)
        return target.generation_id, await start_serving(connection, target, event)


def previous(generations: Sequence[Generation]) -> Generation | None:
    """The one that stopped serving last and still holds its rows."""

    def stopped_at(generation: Generation) -> datetime:
        assert generation.superseded_at is not None
        return generation.superseded_at

    served = [
        generation
        for generation in generations
        if generation.state == "ready" and generation.superseded_at is not None
    ]
    return max(served, key=stopped_at, default=None)


def _nothing_before(rollback: Rollback) -> CallError:
    place = f"collection {rollback.collection!r}" if rollback.collection else "the messages"
    return CallError(
        grpc.StatusCode.FAILED_PRECONDITION,
        error_pb2.ERROR_REASON_GENERATION_NOT_FOUND,
        f"No generation served {place} of workspace {rollback.workspace_id!r} before the one that "
        "serves now: there is nothing to go back to. `recall generations list` shows them.",
    )
