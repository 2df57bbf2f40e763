"""ListDueReplays: calibrations of live generations whose labels are to be replayed now."""

from __future__ import annotations

from dataclasses import dataclass

from services.corpus import Source
from services.ingest.calibrations import STATEMENTS
from services.ingest.resources import Resources
from services.runtime import db
from services.runtime.callers import Caller


@dataclass(frozen=True)
class DueReplay:
    """One calibration and why it is due: "daily", "corpus_changed" or "erasure"."""

    workspace_id: str
    calibration_id: str
    generation_id: str
    source: Source
    collection: str
    cause: str


async def list_due_replays(resources: Resources, caller: Caller) -> list[DueReplay]:
    """What is due in the workspaces that the caller may read: a day after the last measurement,
    after 5 % of the chunks came or went, at once after an erasure of what a label points at."""
    due: list[DueReplay] = []
    async with db.across_tenants(resources.queue_pool) as connection:
        calibrated = await db.fetch_all(connection, STATEMENTS["calibrated_workspaces"], {})
    for (workspace_id,) in calibrated:
        if not caller.may_read_workspace(workspace_id):
            continue
        async with db.reading(resources.pool, workspace_id) as reading:
            key = {"workspace_id": workspace_id}
            rows = await db.fetch_all(reading, STATEMENTS["due_replays"], key)
        due += [
            DueReplay(workspace_id, row[0], row[1], Source(row[2]), row[3], row[4]) for row in rows
        ]
    return due
