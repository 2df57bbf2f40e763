"""The RPCs of the fact ledger: from proto, call the use case, to proto."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import grpc

from recall.ingest.v1 import ledger_pb2, ledger_pb2_grpc
from services.ingest import evidence_cards
from services.ingest import ledger_wire as wire
from services.ingest.apply_fact import apply_fact
from services.ingest.issue_cards import issue_cards
from services.ingest.list_facts import list_facts
from services.ingest.resources import Resources
from services.runtime import call as calls
from services.runtime import db
from services.runtime.callers import require_channels, require_workspace

Context = grpc.aio.ServicerContext[Any, Any]

NAMES = ("LedgerService",)


def utc_now() -> datetime:
    """The present."""
    return datetime.now(UTC)


class LedgerService(ledger_pb2_grpc.LedgerServiceServicer):
    """Keeps reviewed facts and the evidence they stand on."""

    def __init__(self, resources: Resources, now: Callable[[], datetime]) -> None:
        self._resources = resources
        self._now = now

    async def IssueCards(  # noqa: N802
        self, request: ledger_pb2.IssueCardsRequest, context: Context
    ) -> ledger_pb2.IssueCardsResponse:
        """See the proto."""
        _require(request.workspace_id, request.context.channel_ids)
        cards = await issue_cards(self._resources, wire.trusted_sources(request))
        return ledger_pb2.IssueCardsResponse(cards=[wire.card(card) for card in cards])

    async def ReadCards(  # noqa: N802
        self, request: ledger_pb2.ReadCardsRequest, context: Context
    ) -> ledger_pb2.ReadCardsResponse:
        """See the proto."""
        _require(request.workspace_id, request.context.channel_ids)
        async with db.reading(self._resources.pool, request.workspace_id) as connection:
            cards = await evidence_cards.read_cards(
                connection, request.workspace_id, request.card_ids, request.context.channel_ids
            )
        named = [cards[one] for one in dict.fromkeys(request.card_ids) if one in cards]
        return ledger_pb2.ReadCardsResponse(cards=[wire.card(card) for card in named])

    async def ApplyFact(  # noqa: N802
        self, request: ledger_pb2.ApplyFactRequest, context: Context
    ) -> ledger_pb2.ApplyFactResponse:
        """See the proto."""
        _require(request.workspace_id, request.context.channel_ids)
        asked = wire.fact_request(request)
        recorded = await apply_fact(self._resources, asked, self._now().date())
        return wire.decided(recorded)

    async def ListFacts(  # noqa: N802
        self, request: ledger_pb2.ListFactsRequest, context: Context
    ) -> ledger_pb2.ListFactsResponse:
        """See the proto."""
        _require(request.workspace_id, request.context.channel_ids)
        facts = await list_facts(self._resources, wire.fact_query(request, self._now()))
        return ledger_pb2.ListFactsResponse(facts=[wire.assertion(fact) for fact in facts])


def register(
    server: grpc.aio.Server, resources: Resources, now: Callable[[], datetime] = utc_now
) -> None:
    """Add the service to a server."""
    service = LedgerService(resources, now)
    ledger_pb2_grpc.add_LedgerServiceServicer_to_server(service, server)


def _require(workspace_id: str, channel_ids: Any) -> None:
    require_workspace(calls.caller(), workspace_id)
    require_channels(calls.caller(), channel_ids)
