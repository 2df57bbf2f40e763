"""ValidateGeneration: ingest reads a generation back, a search proves that both arms find it."""

from __future__ import annotations

from collections.abc import Iterable

from recall.corpus.v1 import corpus_pb2
from recall.ingest.v1 import generations_pb2
from recall.retrieve.v1 import retrieve_pb2
from services.gateway.clients import Stages, reach
from services.gateway.deadline import Deadline

# Reading back a large generation takes its time.
VALIDATE_SECONDS = 600.0
# With live traffic the wanted chunk may change between the call that names it and the search.
ATTEMPTS = 5


async def validate_generation(
    stages: Stages, workspace_id: str, generation_id: str, actor: str, deadline: Deadline
) -> generations_pb2.ValidateGenerationResponse:
    """Ask for the rows to be read, search for the chunk that is named, and say what was found.

    Raises CallError as the two stages do.
    """
    request = generations_pb2.ValidateGenerationRequest(
        workspace_id=workspace_id, generation_id=generation_id, actor=actor
    )
    for _ in range(ATTEMPTS):
        checked = await reach(
            "ingest", stages.generations.ValidateGeneration, request, deadline.left()
        )
        if not checked.HasField("wanted"):
            break
        found = await _search(stages, checked, deadline)
        request.smoke_search.CopyFrom(found)
    return checked


async def _search(
    stages: Stages, checked: generations_pb2.ValidateGenerationResponse, deadline: Deadline
) -> generations_pb2.SmokeSearch:
    """Search for the wanted chunk by its own words, in exactly this generation."""
    generation, wanted = checked.generation, checked.wanted
    request = retrieve_pb2.SearchRequest(
        context=corpus_pb2.QueryContext(
            source=generation.source,
            workspace_id=generation.workspace_id,
            channel_ids=[wanted.channel_id],
        ),
        question=wanted.question,
        pin=corpus_pb2.Pin(generation_id=generation.generation_id),
        explain=True,
        trust_mode=corpus_pb2.TRUST_MODE_RELAXED,
        may_be_unserved=True,
    )
    reply = await reach("retrieve", stages.retriever.Search, request, deadline.left())
    shown = reply.explanation
    return generations_pb2.SmokeSearch(
        chunk_id=wanted.chunk_id,
        question=wanted.question,
        channel_id=wanted.channel_id,
        found_dense=_lists(shown.dense, wanted.chunk_id),
        found_lexical=_lists(shown.lexical, wanted.chunk_id),
    )


def _lists(candidates: Iterable[retrieve_pb2.Candidate], chunk_id: str) -> bool:
    return any(candidate.chunk_id == chunk_id for candidate in candidates)
