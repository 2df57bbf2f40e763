"""RecordCalibration: fit and certify a threshold on what searches measured, or replay one."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from services.ingest.audit import AuditEvent, record_audit
from services.ingest.calibrations import (
    STATEMENTS,
    Listed,
    MeasuredOn,
    Stored,
    list_stored,
    read_goal,
    read_measured_on,
    read_stored,
    save_calibration,
    save_labels,
    save_replay,
)
from services.ingest.labels import Label, canonical, digest
from services.ingest.measure_calibration import (
    Certification,
    Goal,
    Measurement,
    apart,
    fit_logistic,
    fit_reference,
    replay,
)
from services.ingest.resources import Resources
from services.ingest.workspaces import read_workspace
from services.runtime import db
from services.runtime.errors import invalid

# States of a generation that still has its rows.
WITH_ROWS = ("validating", "ready", "active")
ASKED_FOR = "calibrate"
REBUILT = "rebuilt"


@dataclass(frozen=True)
class Asked:
    """Samples of one generation. ``replayed`` names a calibration to measure on them instead of
    fitting anew; ``cause`` says why."""

    workspace_id: str
    generation_id: str
    rule: str
    labels: tuple[Label, ...]
    measured: tuple[Measurement, ...]
    replayed: str = ""
    actor: str = ""
    cause: str = ""


async def record_calibration(resources: Resources, asked: Asked) -> Listed:
    """Measure, and publish what certifies; a replay of the same generation may void instead.

    What is rejected is kept with its reason, and no search reads it. Raises CallError
    WORKSPACE_NOT_FOUND, GENERATION_NOT_FOUND, NOT_FOUND, INVALID_ARGUMENT.
    """
    text = canonical(asked.labels)
    async with db.reading(resources.pool, asked.workspace_id) as connection:
        await read_workspace(connection, asked.workspace_id)
        goal = await read_goal(connection, asked.workspace_id)
        before = await read_measured_on(connection, asked.workspace_id, asked.generation_id)
    if before.state not in WITH_ROWS:
        raise invalid("generation_id", f"names a generation that is {before.state}")
    async with db.writing(resources.pool, asked.workspace_id) as connection:
        stored = await _stored(connection, asked)
    certified = await _measure(asked, stored, goal)
    async with db.writing(resources.pool, asked.workspace_id) as connection:
        # What was measured stays as it is until the outcome is stored.
        key = {"workspace_id": asked.workspace_id, "generation_id": asked.generation_id}
        await connection.execute(STATEMENTS["hold_generation"], key)
        now = await read_measured_on(connection, asked.workspace_id, asked.generation_id)
        _require_same(before, now)
        if stored is not None and stored.generation_id == asked.generation_id:
            calibration_id = await _replayed(connection, asked, certified, now, goal)
        else:
            calibration_id = await _made(connection, asked, text, certified, now)
        [listed] = await list_stored(connection, asked.workspace_id, "", calibration_id)
    return listed


async def _stored(connection: db.Connection, asked: Asked) -> Stored | None:
    if not asked.replayed:
        return None
    stored = await read_stored(connection, asked.workspace_id, asked.replayed)
    if stored.state != "published":
        raise invalid(
            "replayed_calibration_id",
            f"names a calibration that is {stored.state}; only a published one can be replayed",
        )
    return stored


async def _measure(asked: Asked, stored: Stored | None, goal: Goal) -> Certification:
    if stored is not None:
        return await apart(replay, stored.model, asked.measured, goal)
    if asked.rule == "reference":
        return await apart(fit_reference, asked.measured, goal)
    try:
        return await apart(fit_logistic, asked.measured, goal)
    except ValueError as error:
        raise invalid("samples", f"are too few: {error}") from None


async def _made(
    connection: db.Connection, asked: Asked, text: str, certified: Certification, given: MeasuredOn
) -> str:
    """A new calibration of the generation: fitted, or carried to a rebuilt one by the replay."""
    labels_sha256 = digest(text)
    key = {
        "workspace_id": asked.workspace_id,
        "calibration_id": f"c-{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(3)}",
        "generation_id": asked.generation_id,
        "rule": certified.model.rule,
        "labels_sha256": labels_sha256,
    }
    await save_labels(connection, asked.workspace_id, labels_sha256, text)
    await save_calibration(connection, key, certified, given)
    cause = REBUILT if asked.replayed else ASKED_FOR
    await save_replay(connection, key, cause, certified.rates)
    kind = "calibration_published" if certified.is_certified else "calibration_rejected"
    await _audit(connection, asked, kind, key["calibration_id"])
    return key["calibration_id"]


async def _replayed(
    connection: db.Connection, asked: Asked, certified: Certification, given: MeasuredOn, goal: Goal
) -> str:
    """One more measurement of the calibration; it is voided when a bound is above its target."""
    key = {"workspace_id": asked.workspace_id, "calibration_id": asked.replayed}
    # Somebody may have voided or replaced it meanwhile.
    await _stored(connection, asked)
    await save_replay(connection, key, asked.cause or ASKED_FOR, certified.rates)
    if certified.is_certified:
        changed = {
            "corpus_chunks": given.corpus_chunks,
            "false_confirm_target": goal.false_confirm,
            "false_abstain_target": goal.false_abstain,
        }
        await connection.execute(STATEMENTS["replayed"], {**key, **changed})
    else:
        reason = f"replayed ({asked.cause or ASKED_FOR}): {certified.reason}"
        await connection.execute(STATEMENTS["void"], {**key, "reason": reason})
        await _audit(connection, asked, "calibration_voided", asked.replayed)
    return asked.replayed


async def _audit(connection: db.Connection, asked: Asked, kind: str, calibration_id: str) -> None:
    event = AuditEvent(kind, asked.actor, asked.generation_id, {"calibration_id": calibration_id})
    await record_audit(connection, asked.workspace_id, event)


def _require_same(before: MeasuredOn, now: MeasuredOn) -> None:
    """What was measured must still be what is there."""
    same = (before.pipeline_fingerprint, before.corpus_fingerprint)
    if (now.pipeline_fingerprint, now.corpus_fingerprint) != same or now.state not in WITH_ROWS:
        raise invalid("generation_id", "names a generation that changed meanwhile; calibrate again")


def measurements(
    samples: Sequence[tuple[Label, dict[str, float]]],
) -> tuple[Measurement, ...]:
    """What each sample measured."""
    return tuple(
        Measurement(label.question, label.answerable, signals) for label, signals in samples
    )
