"""PromoteGeneration: makes a validated generation the serving one, if it may be trusted."""

from __future__ import annotations

from dataclasses import dataclass

import grpc

from recall.error.v1 import error_pb2
from services.calibration.model import digest, is_readable
from services.ingest.audit import AuditEvent
from services.ingest.generations import Generation, count_behind, count_gaps
from services.ingest.resources import Resources
from services.ingest.serving import Served, not_ready, read_one, start_serving
from services.ingest.workspaces import changing, read_workspace
from services.runtime import db, sql
from services.runtime.errors import CallError

FIRST = "first"

_STATEMENTS = sql.load("services.ingest", "lifecycle.sql")
_UNFINISHED = {
    "building": "it was not validated. `recall generations validate {0}` does it.",
    "validating": "its validation is not finished. `recall generations validate {0}` repeats it.",
    "retired": "it is retired and holds no rows. Build a new one.",
    "failed": "it failed. Build a new one.",
}


@dataclass(frozen=True)
class Promotion:
    """Which generation to promote, who asks, and whether to do without a certified calibration."""

    workspace_id: str
    generation_id: str
    actor: str = ""
    uncertified: bool = False


async def promote_generation(resources: Resources, promotion: Promotion) -> Served:
    """Make a generation active; the active one becomes ready and is the way back.

    A generation that is active already stays so. Raises CallError WORKSPACE_NOT_FOUND,
    GENERATION_NOT_FOUND, GENERATION_NOT_READY with what is missing, CALIBRATION_UNCERTIFIED when
    no published calibration certifies it: in production always, elsewhere unless asked to do
    without.
    """
    async with changing(resources.pool, promotion.workspace_id) as connection:
        await read_workspace(connection, promotion.workspace_id)
        generation = await read_one(connection, promotion.workspace_id, promotion.generation_id)
        if generation.state == "active":
            return Served()
        if generation.state != "ready":
            why = _UNFINISHED[generation.state].format(generation.generation_id)
            raise not_ready(generation, why)
        await require_complete(connection, generation)
        calibration_id = await _certified_by(connection, generation)
        if not calibration_id:
            _require_permission(resources, generation, promotion)
        details = {
            "calibration_id": calibration_id,
            "calibration_status": generation.calibration_status,
            "uncertified": not calibration_id,
        }
        event = AuditEvent("generation_promoted", promotion.actor, details=details)
        return await start_serving(connection, generation, event)


async def serve_first(
    connection: db.Connection, resources: Resources, generation: Generation
) -> bool:
    """Let a workspace's first generation serve while it is still being built; audited.

    Nothing serves yet, so nothing is put at risk; its vectors follow. In production it is left to
    be validated, calibrated and promoted, and the answer is False.
    """
    if resources.is_production:
        return False
    details = {"uncertified": True, "cause": FIRST}
    await start_serving(connection, generation, AuditEvent("generation_promoted", "", "", details))
    return True


async def require_complete(connection: db.Connection, generation: Generation) -> None:
    """Raise GENERATION_NOT_READY unless a live generation holds what it should by now.

    What is sealed can not have changed since it was validated.
    """
    if generation.is_sealed:
        return
    gaps = await count_gaps(connection, generation)
    if gaps:
        raise not_ready(
            generation,
            f"{gaps.messages_without_chunk} messages have no chunk and "
            f"{gaps.chunks_without_rows} chunks are not indexed yet. Wait until "
            "`recall generations list` shows it complete; `recall generations build` again "
            "resumes it.",
        )
    behind = await count_behind(connection, generation)
    if behind:
        raise not_ready(
            generation,
            f"{behind} chunks have no vector yet. Wait for the embedding worker; "
            "`recall generations list` shows how far it is.",
        )


async def _certified_by(connection: db.Connection, generation: Generation) -> str:
    """The published calibration that a search would judge by; it can not be voided meanwhile."""
    row = await db.fetch_one(connection, _STATEMENTS["published_calibration"], generation.key)
    if row is None:
        return ""
    calibration_id, model, model_sha256 = row
    return calibration_id if digest(model) == model_sha256 and is_readable(model) else ""


def _require_permission(resources: Resources, generation: Generation, promotion: Promotion) -> None:
    if promotion.uncertified and not resources.is_production:
        return
    standing = {
        "": "was never calibrated",
        "uncertified": "has no calibration that certifies",
        "stale": "has a calibration that no longer holds",
    }
    remedy = f"`recall calibrate FILE --generation {generation.generation_id}` measures it"
    elsewhere = "" if resources.is_production else "; --uncertified promotes it all the same"
    raise CallError(
        grpc.StatusCode.FAILED_PRECONDITION,
        error_pb2.ERROR_REASON_CALIBRATION_UNCERTIFIED,
        f"Generation {generation.generation_id} "
        f"{standing.get(generation.calibration_status, standing['stale'])}: {remedy}{elsewhere}.",
        metadata={
            "generation_id": generation.generation_id,
            "calibration_status": generation.calibration_status,
        },
    )
