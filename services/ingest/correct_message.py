"""CorrectMessage: somebody declares that a newer message replaces what an older one says."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime

from services.ingest.resources import Resources
from services.runtime import db, sql
from services.runtime.callers import Caller
from services.runtime.errors import invalid, not_found

_STATEMENTS = sql.load("services.ingest", "corrections.sql")


@dataclass(frozen=True)
class Correction:
    """Two messages of one workspace, and who says that the second replaces the first."""

    workspace_id: str
    message_id: str
    corrected_by_id: str
    person_id: str


async def correct_message(resources: Resources, caller: Caller, correction: Correction) -> None:
    """Store a correction; the same again changes nothing.

    Whether the person may read both is for the caller to check. Raises CallError NOT_FOUND for a
    message that is not stored, INVALID_ARGUMENT unless the second was posted after the first: so
    corrections never go in a circle.
    """
    if correction.message_id == correction.corrected_by_id:
        raise invalid("corrected_by_id", "must be another message")
    async with db.writing(resources.pool, correction.workspace_id) as connection:
        posted = await _posted(connection, caller, correction)
        if posted[correction.corrected_by_id] <= posted[correction.message_id]:
            raise invalid("corrected_by_id", "must be the newer of the two messages")
        await connection.execute(_STATEMENTS["save_correction"], asdict(correction))


async def _posted(
    connection: db.Connection, caller: Caller, correction: Correction
) -> dict[str, datetime]:
    """When each of the two was posted."""
    wanted = [correction.message_id, correction.corrected_by_id]
    rows = await db.fetch_all(
        connection,
        _STATEMENTS["posted"],
        {"workspace_id": correction.workspace_id, "message_ids": wanted},
    )
    posted = {row[0]: row[2] for row in rows if caller.may_read_channel(row[1])}
    for message_id in wanted:
        if message_id not in posted:
            raise not_found(f"There is no message {message_id!r} in this workspace.")
    return posted
