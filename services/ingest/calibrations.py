"""Stored calibrations: what ingest keeps of them, and what a list shows."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from psycopg.rows import TupleRow

from services.calibration.model import CalibrationModel, digest, from_json, to_json
from services.ingest.labels import Label, still_labelled, stored_labels
from services.ingest.measure_calibration import Certification, Goal, Rates
from services.ingest.serving import no_such_generation
from services.runtime import db, sql
from services.runtime.errors import not_found

STATEMENTS = sql.load("services.ingest", "calibrations.sql")


@dataclass(frozen=True)
class MeasuredOn:
    """What a calibration is true of; ``state`` is the generation's."""

    pipeline_fingerprint: str
    corpus_fingerprint: str
    state: str
    corpus_chunks: int


@dataclass(frozen=True)
class Stored:
    """A calibration as a replay needs it."""

    generation_id: str
    state: str
    model: CalibrationModel
    labels_sha256: str
    pipeline_fingerprint: str
    rule: str


@dataclass(frozen=True)
class Listed:
    """A calibration as people see it, with each measurement, oldest first."""

    calibration_id: str
    generation_id: str
    state: str
    rule: str
    model: CalibrationModel
    reason: str
    more_answerable_needed: int
    more_unanswerable_needed: int
    created_at: datetime
    goal: Goal
    labels_sha256: str
    replays: tuple[tuple[datetime, str, Rates], ...]


async def read_goal(connection: db.Connection, workspace_id: str) -> Goal:
    """The workspace's targets; 0.10 each unless set."""
    row = await db.fetch_one(connection, STATEMENTS["targets"], {"workspace_id": workspace_id})
    return Goal(*row) if row else Goal(0.10, 0.10)


async def read_measured_on(
    connection: db.Connection, workspace_id: str, generation_id: str
) -> MeasuredOn:
    """What the generation is now. Raises CallError GENERATION_NOT_FOUND."""
    key = {"workspace_id": workspace_id, "generation_id": generation_id}
    row = await db.fetch_one(connection, STATEMENTS["fingerprints"], key)
    if row is None:
        raise no_such_generation(workspace_id, generation_id)
    return MeasuredOn(*row)


async def read_stored(connection: db.Connection, workspace_id: str, calibration_id: str) -> Stored:
    """A calibration, locked. Raises CallError NOT_FOUND."""
    key = {"workspace_id": workspace_id, "calibration_id": calibration_id}
    row = await db.fetch_one(connection, STATEMENTS["read_calibration"], key)
    if row is None:
        raise not_found(
            f"Workspace {workspace_id!r} has no calibration {calibration_id!r}. "
            "`recall calibrations` lists them."
        )
    generation_id, state, model, _, labels_sha256, pipeline_fingerprint, rule = row
    return Stored(generation_id, state, from_json(model), labels_sha256, pipeline_fingerprint, rule)


async def save_labels(
    connection: db.Connection, workspace_id: str, labels_sha256: str, text: str
) -> None:
    """Keep labelled questions; the same again changes nothing."""
    await connection.execute(
        STATEMENTS["save_labels"],
        {"workspace_id": workspace_id, "labels_sha256": labels_sha256, "labels": text},
    )


async def save_calibration(
    connection: db.Connection, key: Mapping[str, str], certified: Certification, given: MeasuredOn
) -> None:
    """Store a new calibration: published, in place of the one before, or rejected.

    ``key`` holds workspace_id, calibration_id, generation_id, rule, labels_sha256.
    """
    if certified.is_certified:
        await connection.execute(STATEMENTS["supersede_published"], key)
    goal = await read_goal(connection, key["workspace_id"])
    stored = to_json(certified.model)
    await connection.execute(
        STATEMENTS["save_calibration"],
        {
            **key,
            "state": "published" if certified.is_certified else "rejected",
            "reason": certified.reason,
            "model": json.dumps(stored),
            "model_sha256": digest(stored),
            "pipeline_fingerprint": given.pipeline_fingerprint,
            "corpus_fingerprint": given.corpus_fingerprint,
            "corpus_chunks": given.corpus_chunks,
            "false_confirm_target": goal.false_confirm,
            "false_abstain_target": goal.false_abstain,
            "more_answerable_needed": certified.more_answerable,
            "more_unanswerable_needed": certified.more_unanswerable,
        },
    )


async def save_replay(
    connection: db.Connection, key: Mapping[str, str], cause: str, rates: Rates
) -> None:
    """Append one measurement of a calibration's error rates."""
    await connection.execute(STATEMENTS["save_replay"], {**key, "cause": cause, **asdict(rates)})


async def read_labels(
    connection: db.Connection, workspace_id: str, calibration_id: str
) -> list[Label]:
    """The labels of a calibration that still say something. Raises CallError NOT_FOUND."""
    key = {"workspace_id": workspace_id, "calibration_id": calibration_id}
    row = await db.fetch_one(connection, STATEMENTS["read_labels"], key)
    if row is None:
        raise not_found(f"Workspace {workspace_id!r} has no calibration {calibration_id!r}.")
    labels = stored_labels(row[0])
    named = sorted({message_id for label in labels for message_id in label.relevant_ids})
    given = {"workspace_id": workspace_id, "message_ids": named}
    erased = await db.fetch_all(connection, STATEMENTS["erased_among"], given)
    return still_labelled(labels, {row[0] for row in erased})


async def read_feedback_labels(connection: db.Connection, workspace_id: str) -> list[Label]:
    """Labels of "Helpful" and "Not helpful": the newest judgement of a question counts.

    An answer that did not help says only that this question was not answered well.
    """
    rows = await db.fetch_all(
        connection, STATEMENTS["feedback_labels"], {"workspace_id": workspace_id}
    )
    return [Label(question, helped, tuple(ids) if helped else ()) for question, helped, ids in rows]


async def list_stored(
    connection: db.Connection, workspace_id: str, generation_id: str, calibration_id: str = ""
) -> list[Listed]:
    """Calibrations of a workspace, newest first; of one generation or one alone when named."""
    key = {
        "workspace_id": workspace_id,
        "generation_id": generation_id,
        "calibration_id": calibration_id,
    }
    rows = await db.fetch_all(connection, STATEMENTS["list_calibrations"], key)
    replays = await _replays(connection, workspace_id, [row[0] for row in rows])
    return [_listed(row, replays.get(row[0], ())) for row in rows]


def _listed(row: TupleRow, replays: tuple[Any, ...]) -> Listed:
    calibration_id, generation_id, state, rule, model, reason, more, more_not, *rest = row
    created_at, false_confirm, false_abstain, labels_sha256 = rest
    return Listed(
        calibration_id=calibration_id,
        generation_id=generation_id,
        state=state,
        rule=rule,
        model=from_json(model),
        reason=reason,
        more_answerable_needed=more,
        more_unanswerable_needed=more_not,
        created_at=created_at,
        goal=Goal(false_confirm, false_abstain),
        labels_sha256=labels_sha256,
        replays=replays,
    )


async def _replays(
    connection: db.Connection, workspace_id: str, calibration_ids: Sequence[str]
) -> dict[str, tuple[Any, ...]]:
    given = {"workspace_id": workspace_id, "calibration_ids": list(calibration_ids)}
    found: dict[str, list[Any]] = {}
    for row in await db.fetch_all(connection, STATEMENTS["list_replays"], given):
        found.setdefault(row[0], []).append((row[1], row[2], Rates(*row[3:])))
    return {calibration_id: tuple(each) for calibration_id, each in found.items()}
