"""ValidateGeneration: ingest reads a generation back, a search proves that both arms find it."""

from __future__ import annotations

import math
from collections.abc import Iterable

from google.protobuf.timestamp_pb2 import Timestamp

from recall.corpus.v1 import corpus_pb2
from recall.ingest.v1 import generations_pb2
from recall.retrieve.v1 import retrieve_pb2
from services.gateway.clients import Stages, reach
from services.gateway.deadline import Deadline

# Reading back a large generation takes its time.
VALIDATE_SECONDS = 600.0
# With live traffic the wanted chunk may change between the call that names it and the search.
ATTEMPTS = 5
# A text lies nearer to its own words than this cosine distance; what another model made of it, or
# of another text, lies about at 1.
FARTHEST = 0.5


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
        filter=_at_its_time(wanted),
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
        found_dense=_lists(shown.dense, wanted.chunk_id, FARTHEST),
        # Words that no question is searched for, such as "to be", leave that arm nothing to find.
        found_lexical=_lists(shown.lexical, wanted.chunk_id) or not shown.lexical_query,
    )


def _at_its_time(wanted: generations_pb2.SmokeSearch) -> corpus_pb2.Filter:
    end = Timestamp()
    end.FromMicroseconds(wanted.posted_until.ToMicroseconds() + 1)
    return corpus_pb2.Filter(posted_after=wanted.posted_from, posted_before=end)


def _lists(
    candidates: Iterable[retrieve_pb2.Candidate], chunk_id: str, farthest: float = math.inf
) -> bool:
    return any(each.chunk_id == chunk_id and each.score < farthest for each in candidates)
