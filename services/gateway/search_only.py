"""A search without an answer: hits with their verdicts, reranked only when asked for."""

from __future__ import annotations

from recall.corpus.v1 import corpus_pb2
from recall.gateway.v1 import gateway_pb2
from recall.retrieve.v1 import retrieve_pb2
from services.gateway.ask import Question, rerank
from services.gateway.clients import Stages, reach
from services.gateway.deadline import Deadline
from services.gateway.trust import trust_of
from services.runtime import call as calls
from services.runtime.errors import invalid

# What one reranking takes.
RERANKED = 10


async def search_only(
    request: gateway_pb2.SearchRequest,
    context: corpus_pb2.QueryContext,
    stages: Stages,
    deadline: Deadline,
) -> retrieve_pb2.SearchResponse:
    """What retrieve finds. Raises CallError as retrieve does; a refusal is an error here."""
    if not request.question.strip():
        raise invalid("question", "must not be empty. Ask in a few words.")
    trust = trust_of(request)
    wire = retrieve_pb2.SearchRequest(
        context=context,
        question=request.question,
        filter=request.filter,
        limit=request.limit,
        explain=request.explain,
        trust_mode=trust.mode,
        valid_at=trust.valid_at,
        known_as_of=trust.known_as_of,
    )
    found = await reach("retrieve", stages.retriever.Search, wire, deadline.left())
    if request.rerank and found.hits:
        question = Question(request.question, context, request.filter, ask_id=calls.request_id())
        ranked = await rerank(question, found.question, found.hits[:RERANKED], stages, deadline)
        rest = found.hits[RERANKED:]
        ordered = [*ranked.hits, *rest]
        del found.hits[:]
        found.hits.extend(ordered)
        found.degraded.extend(ranked.degraded)
    return found
