"""ListFacts: the facts that held at an instant, as known at an instant."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, date, datetime

from services.ingest.fact_ledger import Assertion, read_assertions
from services.ingest.resources import Resources
from services.runtime import db


@dataclass(frozen=True)
class FactQuery:
    """Which facts. ``channel_ids`` are the collections whose documents the asker may read."""

    workspace_id: str
    channel_ids: tuple[str, ...]
    valid_at: datetime
    known_as_of: datetime | None = None
    namespace: str = ""
    subject: str = ""


async def list_facts(resources: Resources, query: FactQuery) -> list[Assertion]:
    """Facts by namespace, subject, predicate and context, with the documents that may be read.

    A fact that only other documents declare does not exist for the asker.
    """
    only = {"namespace": query.namespace, "subject": query.subject}
    async with db.reading(resources.pool, query.workspace_id) as connection:
        found = await read_assertions(connection, query.workspace_id, query.known_as_of, only)
    day = query.valid_at.astimezone(UTC).date()
    readable = (_readable(one, frozenset(query.channel_ids)) for one in found)
    return [one for one in readable if one.source_uris and _holds_on(one, day)]


def _readable(one: Assertion, channel_ids: frozenset[str]) -> Assertion:
    pairs = [
        (uri, channel_id)
        for uri, channel_id in zip(one.source_uris, one.channel_ids, strict=True)
        if channel_id in channel_ids
    ]
    return replace(
        one,
        source_uris=tuple(uri for uri, _ in pairs),
        channel_ids=tuple(channel_id for _, channel_id in pairs),
    )


def _holds_on(one: Assertion, day: date) -> bool:
    return (one.fact.valid_from or date.min) <= day <= (one.fact.valid_until or date.max)
