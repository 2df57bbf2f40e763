"""IssueCards: evidence cards of trusted hits whose documents declare facts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from services.ingest.evidence_cards import make_cards
from services.ingest.facts import Card
from services.ingest.resources import Resources
from services.runtime import db
from services.runtime.errors import invalid

MOST_SOURCES = 64


@dataclass(frozen=True)
class TrustedSources:
    """Documents of hits with the verdict ok, in the collections that the asker may read."""

    workspace_id: str
    generation_id: str
    calibration_id: str
    source_uris: tuple[str, ...]
    channel_ids: tuple[str, ...]


async def issue_cards(resources: Resources, trusted: TrustedSources) -> Sequence[Card]:
    """The cards in the order of the documents; the same evidence has the same card.

    Raises CallError INVALID_ARGUMENT for more than 64 documents.
    """
    if len(trusted.source_uris) > MOST_SOURCES:
        raise invalid("source_uris", f"at most {MOST_SOURCES} documents at once")
    async with db.writing(resources.pool, trusted.workspace_id) as connection:
        parameters = {
            **vars(trusted),
            "source_uris": list(trusted.source_uris),
            "channel_ids": list(trusted.channel_ids),
        }
        cards = await make_cards(connection, parameters)
    return [cards[uri] for uri in dict.fromkeys(trusted.source_uris) if uri in cards]
