"""RecordFeedback: one person's judgement of one answer, a label for calibration."""

from __future__ import annotations

from dataclasses import dataclass

from services.ingest.deliveries import no_such_delivery, store_feedback
from services.ingest.identifiers import storable_id
from services.ingest.markup import storable
from services.ingest.resources import Resources
from services.runtime import db
from services.runtime.errors import invalid


@dataclass(frozen=True)
class Judgement:
    """Whether an answer helped a person, with the question that it answered."""

    delivery_id: str
    person_id: str
    is_helpful: bool
    question: str


async def record_feedback(resources: Resources, workspace_id: str, judgement: Judgement) -> None:
    """Store the judgement with the ids of the cited messages; a person's last one counts.

    Raises CallError NOT_FOUND, INVALID_ARGUMENT.
    """
    person_id = storable_id(judgement.person_id)
    if not person_id:
        raise invalid("person_id", "must name who judges")
    async with db.writing(resources.pool, workspace_id) as connection:
        is_stored = await store_feedback(
            connection,
            workspace_id,
            delivery_id=judgement.delivery_id,
            person_id=person_id,
            is_helpful=judgement.is_helpful,
            question=storable(judgement.question),
        )
    if not is_stored:
        raise no_such_delivery(workspace_id, judgement.delivery_id)
