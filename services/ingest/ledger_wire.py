"""The ledger's values from and to the wire."""

from __future__ import annotations

from datetime import datetime

from recall.ingest.v1 import ledger_pb2
from services.corpus import instant, timestamp
from services.ingest.apply_fact import FactRequest
from services.ingest.fact_decision import Fresh
from services.ingest.fact_ledger import Assertion, Recorded
from services.ingest.facts import Card, Fact, FactError, read_fact
from services.ingest.issue_cards import TrustedSources
from services.ingest.list_facts import FactQuery
from services.runtime.errors import invalid

_PARTS = (
    "namespace", "subject", "predicate", "object", "context", "valid_from", "valid_until"
)  # fmt: skip


def claim(wire: ledger_pb2.Fact) -> Fact:
    """The fact of a request. Raises CallError INVALID_ARGUMENT that names the part."""
    try:
        return read_fact({part: getattr(wire, part) for part in _PARTS})
    except FactError as fault:
        raise invalid(f"fact.{fault.field}", fault.problem) from None


def fact_request(request: ledger_pb2.ApplyFactRequest) -> FactRequest:
    """What is to be decided."""
    return FactRequest(
        workspace_id=request.workspace_id,
        request_id=request.request_id,
        actor=request.actor,
        claim=claim(request.fact),
        card_ids=tuple(dict.fromkeys(request.card_ids)),
        channel_ids=tuple(request.context.channel_ids),
        fresh={one.collection: _fresh(one) for one in request.fresh_searches},
    )


def trusted_sources(request: ledger_pb2.IssueCardsRequest) -> TrustedSources:
    """The documents to make cards of."""
    return TrustedSources(
        workspace_id=request.workspace_id,
        generation_id=request.generation_id,
        calibration_id=request.calibration_id,
        source_uris=tuple(request.source_uris),
        channel_ids=tuple(request.context.channel_ids),
    )


def fact_query(request: ledger_pb2.ListFactsRequest, now: datetime) -> FactQuery:
    """Which facts are asked for; without an instant, those that hold now."""
    has_known = request.HasField("known_as_of")
    return FactQuery(
        workspace_id=request.workspace_id,
        channel_ids=tuple(request.context.channel_ids),
        valid_at=instant(request.valid_at) if request.HasField("valid_at") else now,
        known_as_of=instant(request.known_as_of) if has_known else None,
        namespace=request.namespace,
        subject=request.subject,
    )


def decided(recorded: Recorded) -> ledger_pb2.ApplyFactResponse:
    """A decision."""
    return ledger_pb2.ApplyFactResponse(
        decision=ledger_pb2.FactDecision.Value(f"FACT_DECISION_{recorded.verdict}"),
        event_id=recorded.event_id,
        explanation=recorded.explanation,
        superseded_event_ids=recorded.superseded_event_ids,
    )


def card(found: Card) -> ledger_pb2.EvidenceCard:
    """An evidence card."""
    return ledger_pb2.EvidenceCard(
        card_id=found.card_id,
        generation_id=found.generation_id,
        source_uri=found.source_uri,
        source_sha256=found.source_sha256,
        facts=[fact(one) for one in found.facts],
        card_sha256=found.card_sha256,
        collection=found.channel_id,
    )


def fact(found: Fact) -> ledger_pb2.Fact:
    """A fact."""
    return ledger_pb2.Fact(**found.as_json())


def assertion(found: Assertion) -> ledger_pb2.LedgerFact:
    """A recorded fact."""
    return ledger_pb2.LedgerFact(
        event_id=found.event_id,
        fact=fact(found.fact),
        source_uris=found.source_uris,
        recorded_at=timestamp(found.recorded_at),
        actor=found.actor,
    )


def _fresh(wire: ledger_pb2.FreshSearch) -> Fresh:
    return Fresh(
        was_made=wire.was_made,
        generation_id=wire.generation_id,
        calibration_id=wire.calibration_id,
        trusted_source_uris=frozenset(wire.trusted_source_uris),
    )
