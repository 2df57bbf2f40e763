"""The calibration that judges a search: the published one of exactly the pinned generation."""

from __future__ import annotations

from dataclasses import dataclass

import grpc
from psycopg.rows import TupleRow

from recall.error.v1 import error_pb2
from services.calibration.model import CalibrationModel, ModelError, digest, from_json
from services.corpus import QueryContext, Source
from services.retrieve.resolve_pin import Generation
from services.runtime import db, sql
from services.runtime.errors import CallError

STATEMENTS = sql.load("services.retrieve", "trust.sql")


@dataclass(frozen=True)
class Published:
    """A certified threshold that is in force."""

    calibration_id: str
    model: CalibrationModel


@dataclass(frozen=True)
class Absent:
    """There is none in force; ``reason`` is an ErrorReason, ``why`` is for a person."""

    reason: error_pb2.ErrorReason.ValueType
    why: str


Calibration = Published | Absent

MISSING = Absent(
    error_pb2.ERROR_REASON_CALIBRATION_MISSING,
    "it has no calibration. Label some questions and run `recall calibrate`",
)


async def read_calibration(
    connection: db.Connection, context: QueryContext, generation: Generation
) -> Calibration:
    """What is published for the generation, or why nothing is."""
    parameters = {
        "workspace_id": context.workspace_id,
        "generation_id": generation.generation_id,
    }
    row = await db.fetch_one(connection, STATEMENTS["calibration"], parameters)
    return MISSING if row is None else _calibration(row)


async def is_strict(connection: db.Connection, context: QueryContext, wanted: bool | None) -> bool:
    """Whether a search without a certified calibration is refused: as the call wants, else as the
    workspace is set, else for documents only."""
    if wanted is not None:
        return wanted
    parameters = {"workspace_id": context.workspace_id}
    row = await db.fetch_one(connection, STATEMENTS["is_strict"], parameters)
    if row is None or row[0] is None:
        return context.source is Source.DOCUMENT
    return bool(row[0])


def refusal(generation: Generation, absent: Absent) -> CallError:
    """The refusal of a strict search. Nothing was retrieved, and it holds no text of the corpus."""
    return CallError(
        grpc.StatusCode.FAILED_PRECONDITION,
        absent.reason,
        f"Generation {generation.generation_id} can not be trusted: {absent.why}. Nothing was "
        "searched.",
        metadata={"generation_id": generation.generation_id},
    )


def _calibration(row: TupleRow) -> Calibration:
    calibration_id, state, reason, stored, stored_sha256, is_true = row
    if state == "rejected":
        why = f"its calibration was rejected: {reason}"
        return Absent(error_pb2.ERROR_REASON_CALIBRATION_UNCERTIFIED, why)
    if state != "published":
        return _stale(f"its calibration was voided: {reason or 'another was made'}")
    if not is_true:
        return _stale("what its calibration was measured on has changed. Calibrate it again")
    if digest(stored) != stored_sha256:
        return _stale("its stored calibration does not match its hash. Calibrate it again")
    try:
        return Published(calibration_id, from_json(stored))
    except ModelError as error:
        return _stale(f"its stored calibration can not be read ({error}). Calibrate it again")


def _stale(why: str) -> Absent:
    return Absent(error_pb2.ERROR_REASON_CALIBRATION_STALE, why)
