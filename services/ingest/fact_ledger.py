"""The fact ledger in the database: decisions appended, assertions read as of an instant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from services.ingest.fact_decision import ABSTENTIONS, Decision, HeldFact, Standing, Verdict
from services.ingest.facts import Fact, canonical_sha256, ended_by
from services.runtime import db, sql

EVENT_ID_CHARACTERS = 32

_STATEMENTS = sql.load("services.ingest", "ledger.sql")


@dataclass(frozen=True)
class Assertion:
    """A recorded fact: what is left of its window, and the documents that declared it."""

    event_id: str
    fact: Fact
    source_uris: tuple[str, ...]
    channel_ids: tuple[str, ...]
    recorded_at: datetime
    actor: str


@dataclass(frozen=True)
class Recorded:
    """A decision as the ledger holds it."""

    verdict: Verdict
    event_id: str
    explanation: str
    request_sha256: str
    superseded_event_ids: tuple[str, ...]


@dataclass(frozen=True)
class Entry:
    """What an event says beside its decision."""

    workspace_id: str
    request_id: str
    request_sha256: str
    actor: str
    claim: Fact
    card_ids: tuple[str, ...]
    declared: tuple[Standing, ...]


async def lock_ledger(connection: db.Connection, workspace_id: str) -> None:
    """Wait until no other decision of the workspace is under way, to the transaction's end."""
    await connection.execute(_STATEMENTS["lock_ledger"], {"workspace_id": workspace_id})


async def prior_decision(
    connection: db.Connection, workspace_id: str, request_id: str
) -> Recorded | None:
    """What was decided for a request id before."""
    parameters = {"workspace_id": workspace_id, "request_id": request_id}
    row = await db.fetch_one(connection, _STATEMENTS["prior_decision"], parameters)
    if row is None:
        return None
    verdict = Verdict(row[0])
    event_id = row[2] if verdict is Verdict.DUPLICATE else row[1]
    return Recorded(verdict, event_id, row[3], row[4], tuple(row[5]))


async def read_assertions(
    connection: db.Connection,
    workspace_id: str,
    known_as_of: datetime | None = None,
    only: Mapping[str, str] | None = None,
) -> list[Assertion]:
    """Assertions recorded by an instant (None: all) that were not wholly ended by it.

    ``only`` narrows by namespace, subject and predicate.
    """
    parameters = {
        "workspace_id": workspace_id,
        "known_as_of": known_as_of,
        **{name: (only or {}).get(name, "") for name in ("namespace", "subject", "predicate")},
    }
    rows = await db.fetch_all(connection, _STATEMENTS["assertions"], parameters)
    found = (_assertion(row) for row in rows)
    return [assertion for assertion in found if assertion is not None]


async def read_held(
    connection: db.Connection, workspace_id: str, claim: Fact, declared: Sequence[Standing]
) -> list[HeldFact]:
    """The assertions about the same, each with whether the claim's documents replace its own."""
    only = {part: getattr(claim, part) for part in ("namespace", "subject", "predicate")}
    about = await read_assertions(connection, workspace_id, only=only)
    backing = sorted({uri for one in about for uri in one.source_uris})
    replaced = await _replaced_sources(connection, workspace_id, declared)
    existing = await _existing_sources(connection, workspace_id, backing)
    return [
        HeldFact(one.event_id, one.fact, _is_replaced(one, replaced, existing)) for one in about
    ]


async def append(connection: db.Connection, entry: Entry, decision: Decision) -> Recorded:
    """Record a decision and the end of every assertion that it replaces."""
    event_id = _event_id(entry.request_id, "")
    await connection.execute(_STATEMENTS["save_event"], _event(entry, decision, event_id))
    for ended in decision.ended:
        row = {
            **_event(entry, decision, _event_id(entry.request_id, ended.event_id)),
            **_parts(ended.fact),
            "kind": "superseded",
            "asserted_event_id": ended.event_id,
            "replaced_by_event_id": event_id,
        }
        await connection.execute(_STATEMENTS["save_event"], row)
    shown = decision.asserted_event_id or event_id
    return Recorded(
        decision.verdict,
        shown,
        decision.explanation,
        entry.request_sha256,
        tuple(sorted(one.event_id for one in decision.ended)),
    )


def _assertion(row: Sequence[Any]) -> Assertion | None:
    fact: Fact | None = Fact(*row[1:8])
    for first_day in row[12]:
        if fact is None:
            return None
        replacement = Fact("", "", "", "", valid_from=_day(first_day))
        fact = ended_by(fact, replacement)
    if fact is None:
        return None
    return Assertion(row[0], fact, tuple(row[8]), tuple(row[9]), row[10], row[11])


def _day(text: str) -> date | None:
    return date.fromisoformat(text) if text else None


def _is_replaced(one: Assertion, replaced: set[str], existing: set[str]) -> bool:
    sources = set(one.source_uris)
    return bool(sources & replaced) and not (sources & existing) - replaced


async def _replaced_sources(
    connection: db.Connection, workspace_id: str, declared: Sequence[Standing]
) -> set[str]:
    cards = [one.card for one in declared if one.card is not None]
    parameters = {
        "workspace_id": workspace_id,
        "generation_ids": [card.generation_id for card in cards],
        "source_uris": [card.source_uri for card in cards],
    }
    rows = await db.fetch_all(connection, _STATEMENTS["replaced_sources"], parameters)
    return {row[0] for row in rows}


async def _existing_sources(
    connection: db.Connection, workspace_id: str, source_uris: Sequence[str]
) -> set[str]:
    parameters = {"workspace_id": workspace_id, "source_uris": list(source_uris)}
    rows = await db.fetch_all(connection, _STATEMENTS["existing_sources"], parameters)
    return {row[0] for row in rows}


def _event(entry: Entry, decision: Decision, event_id: str) -> dict[str, object]:
    cards = [one.card for one in entry.declared if one.card is not None]
    return {
        "workspace_id": entry.workspace_id,
        "event_id": event_id,
        "request_id": entry.request_id,
        "kind": _kind(decision),
        "decision": decision.verdict.value,
        **_parts(entry.claim),
        "card_ids": list(entry.card_ids),
        "source_uris": [card.source_uri for card in cards],
        "channel_ids": [card.channel_id for card in cards],
        "asserted_event_id": decision.asserted_event_id,
        "replaced_by_event_id": "",
        "request_sha256": entry.request_sha256,
        "actor": entry.actor,
        "explanation": decision.explanation,
    }


def _parts(fact: Fact) -> dict[str, object]:
    return dict(vars(fact))


def _kind(decision: Decision) -> str:
    if decision.is_assertion:
        return "asserted"
    if decision.verdict is Verdict.DUPLICATE:
        return "duplicate"
    return "abstained" if decision.verdict in ABSTENTIONS else "rejected"


def _event_id(request_id: str, ended_event_id: str) -> str:
    digest = canonical_sha256({"request_id": request_id, "ended_event_id": ended_event_id})
    return f"fact-{digest[:EVENT_ID_CHARACTERS]}"
