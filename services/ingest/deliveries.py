"""Rows of deliveries: what was to be posted, and what became of it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from services.runtime import db, sql
from services.runtime.errors import CallError, not_found

# How a delivery can end; it begins as "begun".
ENDS = ("delivered", "suppressed", "failed", "in_doubt")

_STATEMENTS = sql.load("services.ingest", "deliveries.sql")


@dataclass(frozen=True)
class Evidence:
    """A cited message as it stood when the answer was written."""

    message_id: str
    content_sha256: str


@dataclass(frozen=True)
class Intention:
    """What is to be posted for a command, and the claim under which the command runs."""

    workspace_id: str
    job_id: str
    claim_number: int
    purpose: str
    channel_id: str
    person_id: str
    evidence: Sequence[Evidence]
    outcome: str


@dataclass(frozen=True)
class Delivery:
    """One post as it stands. ``message_ts`` is empty when it has none."""

    delivery_id: str
    workspace_id: str
    job_id: str
    purpose: str
    state: str
    channel_id: str
    person_id: str
    message_ts: str
    evidence: tuple[Evidence, ...]
    outcome: str
    reason: str


async def claim_is_held(connection: db.Connection, intention: Intention) -> bool:
    """Whether the claim is current; if so it stays so until the transaction ends."""
    key = {
        "workspace_id": intention.workspace_id,
        "job_id": intention.job_id,
        "claim_number": intention.claim_number,
    }
    return await db.fetch_one(connection, _STATEMENTS["hold_claim"], key) is not None


async def begin(connection: db.Connection, intention: Intention) -> tuple[Delivery, bool]:
    """The delivery of this job and purpose, and whether this call began it."""
    evidence = [vars(each) for each in intention.evidence]
    parameters = vars(intention) | {"evidence": json.dumps(evidence)}
    row = await db.fetch_one(connection, _STATEMENTS["begin"], parameters)
    if row is not None:
        return _delivery(row), True
    row = await db.fetch_one(connection, _STATEMENTS["read_by_job"], parameters)
    assert row is not None  # what is in the way of the insertion is never deleted by itself
    return _delivery(row), False


async def read(connection: db.Connection, workspace_id: str, delivery_id: str) -> Delivery:
    """One delivery. Raises CallError NOT_FOUND."""
    key = {"workspace_id": workspace_id, "delivery_id": delivery_id}
    row = await db.fetch_one(connection, _STATEMENTS["read"], key)
    if row is None:
        raise no_such_delivery(workspace_id, delivery_id)
    return _delivery(row)


async def finish(
    connection: db.Connection, workspace_id: str, delivery_id: str, end: dict[str, str]
) -> Delivery | None:
    """Store ``state``, ``message_ts`` and ``reason`` of a begun delivery; None when not begun."""
    parameters = {"workspace_id": workspace_id, "delivery_id": delivery_id} | end
    row = await db.fetch_one(connection, _STATEMENTS["finish"], parameters)
    return _delivery(row) if row else None


async def store_feedback(connection: db.Connection, workspace_id: str, **fields: object) -> bool:
    """Store one person's judgement; False when there is no such delivery."""
    parameters = {"workspace_id": workspace_id, **fields}
    cursor = await connection.execute(_STATEMENTS["record_feedback"], parameters)
    return cursor.rowcount == 1


def no_such_delivery(workspace_id: str, delivery_id: str) -> CallError:
    """The error for a delivery that does not exist (any more)."""
    return not_found(f"There is no delivery {delivery_id!r} in workspace {workspace_id!r}.")


def _delivery(row: tuple[Any, ...]) -> Delivery:
    found = Delivery(*row)
    return replace(found, evidence=tuple(Evidence(**each) for each in row[-3]))
