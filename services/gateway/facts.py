"""Facts: cards of a trusted search, a claim confirmed by a new one, and what the ledger holds."""

from __future__ import annotations

from collections.abc import Iterable

import grpc

from recall.corpus.v1 import corpus_pb2
from recall.gateway.v1 import admin_pb2
from recall.ingest.v1 import ledger_pb2
from recall.retrieve.v1 import retrieve_pb2
from services.gateway.clients import Stages, reach
from services.gateway.deadline import Deadline
from services.runtime.errors import CallError

FACT_SECONDS = 30.0
SEARCH_SECONDS = 15.0
LEDGER_SECONDS = 10.0
# As many as a search gives: the declaring document need not be the nearest one.
MOST_HITS = 50

_OK = corpus_pb2.VERDICT_OK


async def find_cards(
    request: admin_pb2.FindCardsRequest,
    context: corpus_pb2.QueryContext,
    stages: Stages,
    deadline: Deadline,
) -> admin_pb2.FindCardsResponse:
    """Cards of what a strict search trusts. Raises CallError as retrieve does."""
    found = await _strict_search(request.question, context, request.limit, stages, deadline)
    cards = await issue_cards(found, context, stages, deadline)
    reason = "" if cards else found.reason or "No trusted document that was found declares a fact."
    return admin_pb2.FindCardsResponse(cards=cards, reason=reason)


async def issue_cards(
    found: retrieve_pb2.SearchResponse,
    context: corpus_pb2.QueryContext,
    stages: Stages,
    deadline: Deadline,
) -> list[ledger_pb2.EvidenceCard]:
    """Cards of the hits that are ok; none without a calibration, since nothing judged them."""
    trusted = list(trusted_sources(found))
    if not trusted or not found.calibration_id or context.source != corpus_pb2.SOURCE_DOCUMENT:
        return []
    wire = ledger_pb2.IssueCardsRequest(
        workspace_id=context.workspace_id,
        generation_id=found.pin.generation_id,
        source_uris=trusted,
        calibration_id=found.calibration_id,
        context=context,
    )
    seconds = deadline.share(LEDGER_SECONDS)
    reply = await reach("ingest", stages.ledger.IssueCards, wire, seconds)
    return list(reply.cards)


async def apply_fact(
    request: admin_pb2.ApplyFactRequest,
    context: corpus_pb2.QueryContext,
    actor: str,
    stages: Stages,
    deadline: Deadline,
) -> ledger_pb2.ApplyFactResponse:
    """The ledger's decision after a new trusted search of every collection of the cards.

    An ingest that is away is the decision LEDGER_UNAVAILABLE; it is not recorded. Raises CallError
    INVALID_ARGUMENT for a malformed request.
    """
    wire = ledger_pb2.ApplyFactRequest(
        workspace_id=context.workspace_id,
        fact=request.fact,
        card_ids=request.card_ids,
        request_id=request.request_id,
        actor=actor,
        context=context,
    )
    try:
        for collection in await _collections(request, context, stages, deadline):
            fresh = await _fresh_search(request.fact, context, collection, stages, deadline)
            wire.fresh_searches.append(fresh)
        seconds = deadline.share(LEDGER_SECONDS)
        return await reach("ingest", stages.ledger.ApplyFact, wire, seconds)
    except CallError as error:
        if error.code is not grpc.StatusCode.UNAVAILABLE:
            raise
        return ledger_pb2.ApplyFactResponse(
            decision=ledger_pb2.FACT_DECISION_LEDGER_UNAVAILABLE,
            explanation=f"Nothing was recorded. {error.message}",
        )


async def list_facts(
    request: admin_pb2.ListFactsRequest,
    context: corpus_pb2.QueryContext,
    stages: Stages,
    deadline: Deadline,
) -> list[ledger_pb2.LedgerFact]:
    """The facts of the readable collections. Raises CallError when ingest is away."""
    wire = ledger_pb2.ListFactsRequest(
        workspace_id=context.workspace_id,
        valid_at=request.valid_at if request.HasField("valid_at") else None,
        known_as_of=request.known_as_of if request.HasField("known_as_of") else None,
        namespace=request.namespace,
        subject=request.subject,
        context=context,
    )
    seconds = deadline.share(LEDGER_SECONDS)
    reply = await reach("ingest", stages.ledger.ListFacts, wire, seconds)
    return list(reply.facts)


def trusted_sources(found: retrieve_pb2.SearchResponse) -> Iterable[str]:
    """URIs of the documents of hits that are ok, best first, each once."""
    uris = (hit.provenance.source_uri for hit in found.hits if hit.verdict == _OK)
    return dict.fromkeys(uri for uri in uris if uri)


def words_of(fact: ledger_pb2.Fact) -> str:
    """A fact as a question."""
    parts = (fact.subject, fact.predicate, fact.object, fact.context)
    return " ".join(part.replace("_", " ") for part in parts if part)


async def _collections(
    request: admin_pb2.ApplyFactRequest,
    context: corpus_pb2.QueryContext,
    stages: Stages,
    deadline: Deadline,
) -> list[str]:
    """The collections of the cards that exist for the asker."""
    wire = ledger_pb2.ReadCardsRequest(
        workspace_id=context.workspace_id, card_ids=request.card_ids, context=context
    )
    seconds = deadline.share(LEDGER_SECONDS)
    reply = await reach("ingest", stages.ledger.ReadCards, wire, seconds)
    return sorted({card.collection for card in reply.cards})


async def _fresh_search(
    fact: ledger_pb2.Fact,
    context: corpus_pb2.QueryContext,
    collection: str,
    stages: Stages,
    deadline: Deadline,
) -> ledger_pb2.FreshSearch:
    """What a new strict search finds; one that is refused or fails was not made."""
    narrowed = corpus_pb2.QueryContext(
        source=context.source, workspace_id=context.workspace_id, channel_ids=[collection]
    )
    try:
        found = await _strict_search(words_of(fact), narrowed, MOST_HITS, stages, deadline)
    except CallError as error:
        if error.code is grpc.StatusCode.UNAVAILABLE or error.is_refusal:
            return ledger_pb2.FreshSearch(collection=collection)
        raise
    return ledger_pb2.FreshSearch(
        was_made=True,
        trusted_source_uris=trusted_sources(found),
        generation_id=found.pin.generation_id,
        calibration_id=found.calibration_id,
        collection=collection,
    )


async def _strict_search(
    question: str,
    context: corpus_pb2.QueryContext,
    limit: int,
    stages: Stages,
    deadline: Deadline,
) -> retrieve_pb2.SearchResponse:
    wire = retrieve_pb2.SearchRequest(
        context=context,
        question=question,
        limit=limit,
        trust_mode=corpus_pb2.TRUST_MODE_STRICT,
    )
    seconds = deadline.share(SEARCH_SECONDS)
    return await reach("retrieve", stages.retriever.Search, wire, seconds)
