"""ApplyFact: decides about one fact and appends the decision to the ledger."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date

from services.ingest.evidence_cards import read_standings
from services.ingest.fact_decision import OUTAGES, Decision, Fresh, Verdict, decide, declaring
from services.ingest.fact_ledger import (
    Entry,
    Recorded,
    append,
    lock_ledger,
    prior_decision,
    read_held,
)
from services.ingest.facts import Fact, canonical_sha256
from services.ingest.resources import Resources
from services.runtime import db, sql
from services.runtime.errors import invalid

MOST_CARDS = 64
MOST_REQUEST_BYTES = 64 * 1024
MOST_REQUEST_ID_CHARACTERS = 200
# A fact that one message corrects another; its subject and object are message ids.
CORRECTION = {"namespace": "message", "predicate": "corrected_by"}

_STATEMENTS = sql.load("services.ingest", "ledger.sql")


@dataclass(frozen=True)
class FactRequest:
    """A claim with its evidence. ``channel_ids`` are the collections that the asker may read;
    ``fresh`` is what the new searches found, by collection."""

    workspace_id: str
    request_id: str
    actor: str
    claim: Fact
    card_ids: tuple[str, ...]
    channel_ids: tuple[str, ...]
    fresh: Mapping[str, Fresh]


async def apply_fact(resources: Resources, request: FactRequest, today: date) -> Recorded:
    """The decision, which the same request gets again for ever. ``today`` is in UTC.

    Raises CallError INVALID_ARGUMENT for a request that is too large, names no card, or uses the
    id of another request.
    """
    digest = _checked(request)
    async with db.writing(resources.pool, request.workspace_id) as connection:
        await lock_ledger(connection, request.workspace_id)
        prior = await prior_decision(connection, request.workspace_id, request.request_id)
        if prior is not None:
            return _same_request(prior, digest)
        recorded = await _decide(connection, request, digest, today)
        await derive_corrections(connection, request.workspace_id)
        return recorded


async def derive_corrections(connection: db.Connection, workspace_id: str) -> None:
    """Bring the corrections that facts declare in line with the ledger; repeats harmlessly."""
    parameters = {"workspace_id": workspace_id, **CORRECTION}
    await connection.execute(_STATEMENTS["withdraw_corrections"], parameters)
    await connection.execute(_STATEMENTS["derive_corrections"], parameters)


async def _decide(
    connection: db.Connection, request: FactRequest, digest: str, today: date
) -> Recorded:
    standings = await read_standings(
        connection, request.workspace_id, request.card_ids, request.channel_ids, request.fresh
    )
    declared = declaring(request.claim, standings)
    held = await read_held(connection, request.workspace_id, request.claim, declared)
    decision = decide(request.claim, standings, held, today)
    if decision.verdict in OUTAGES:
        return Recorded(decision.verdict, "", decision.explanation, digest, ())
    entry = Entry(
        workspace_id=request.workspace_id,
        request_id=request.request_id,
        request_sha256=digest,
        actor=request.actor,
        claim=request.claim,
        card_ids=request.card_ids,
        declared=tuple(declared),
    )
    return await append(connection, entry, await _derivable(connection, request, decision))


async def _derivable(
    connection: db.Connection, request: FactRequest, decision: Decision
) -> Decision:
    """The decision, which says so when what is derived of the fact has to wait."""
    claim = request.claim
    is_correction = all(getattr(claim, part) == value for part, value in CORRECTION.items())
    if decision.verdict is not Verdict.APPLIED or not is_correction:
        return decision
    parameters = {
        "workspace_id": request.workspace_id, "subject": claim.subject, "object": claim.object
    }  # fmt: skip
    if await db.fetch_one(connection, _STATEMENTS["correctable"], parameters) is not None:
        return decision
    return replace(
        decision,
        verdict=Verdict.MATERIALIZATION_UNAVAILABLE,
        explanation="The fact is recorded. Its correction is written once both messages are "
        "stored and the second is the newer one.",
    )


def _checked(request: FactRequest) -> str:
    """SHA-256 (hex) of what is asked. Raises CallError INVALID_ARGUMENT."""
    if not 1 <= len(request.card_ids) <= MOST_CARDS:
        raise invalid("card_ids", f"name 1 to {MOST_CARDS} evidence cards")
    if not request.request_id or len(request.request_id) > MOST_REQUEST_ID_CHARACTERS:
        raise invalid("request_id", f"choose one of 1 to {MOST_REQUEST_ID_CHARACTERS} characters")
    asked = {"fact": request.claim.as_json(), "card_ids": sorted(set(request.card_ids))}
    if len(json.dumps(asked)) > MOST_REQUEST_BYTES:
        raise invalid("fact", f"the request may have {MOST_REQUEST_BYTES} bytes")
    return canonical_sha256(asked)


def _same_request(prior: Recorded, digest: str) -> Recorded:
    if prior.request_sha256 != digest:
        raise invalid(
            "request_id", "was used for another fact or other cards; choose a new one for this"
        )
    return prior
