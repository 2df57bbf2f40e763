"""Proto to values and values to proto, for the life of generations."""

from __future__ import annotations

from recall.ingest.v1 import generations_pb2
from services.corpus import source_to_proto, timestamp
from services.ingest.collect_generations import Collection
from services.ingest.generations import ChunkCounts, Generation
from services.ingest.promote_generation import Promotion
from services.ingest.read_back import SmokeSearch
from services.ingest.rollback_generation import Rollback
from services.ingest.validate_generation import Checked, Validation

_STATES = {
    "building": generations_pb2.GENERATION_STATE_BUILDING,
    "validating": generations_pb2.GENERATION_STATE_VALIDATING,
    "ready": generations_pb2.GENERATION_STATE_READY,
    "active": generations_pb2.GENERATION_STATE_ACTIVE,
    "retired": generations_pb2.GENERATION_STATE_RETIRED,
    "failed": generations_pb2.GENERATION_STATE_FAILED,
}


def generation(found: Generation, counts: ChunkCounts) -> generations_pb2.Generation:
    """A generation for the wire."""
    return generations_pb2.Generation(
        generation_id=found.generation_id,
        workspace_id=found.workspace_id,
        source=source_to_proto(found.source),
        state=_STATES[found.state],
        embedder=found.embedder,
        embedder_fingerprint=found.embedder_fingerprint,
        width=found.width,
        chunker_version=found.chunker_version,
        created_at=timestamp(found.created_at),
        promoted_at=timestamp(found.promoted_at),
        chunks=counts.chunks,
        chunks_without_vector=counts.without_vector,
        failure_reason=found.failure_reason,
        collection=found.collection,
        is_sealed=found.is_sealed,
        parent_generation_id=found.parent_generation_id,
        pipeline_fingerprint=found.pipeline_fingerprint,
        corpus_fingerprint=found.corpus_fingerprint,
        validated_at=timestamp(found.validated_at),
        calibration_status=found.calibration_status,
        superseded_at=timestamp(found.superseded_at),
    )


def promotion(request: generations_pb2.PromoteGenerationRequest, caller_name: str) -> Promotion:
    """What a promotion asks for."""
    return Promotion(
        request.workspace_id,
        request.generation_id,
        request.actor or caller_name,
        request.uncertified,
    )


def rollback(request: generations_pb2.RollbackGenerationRequest, caller_name: str) -> Rollback:
    """What a rollback asks for."""
    return Rollback(
        request.workspace_id, request.collection, request.actor or caller_name, request.reason
    )


def collection(request: generations_pb2.CollectGenerationsRequest, caller_name: str) -> Collection:
    """What a collection asks for."""
    return Collection(request.workspace_id, request.actor or caller_name, request.given_up_id)


def validation(request: generations_pb2.ValidateGenerationRequest, caller_name: str) -> Validation:
    """What a validation asks for; the search is absent in its first call."""
    given = request.smoke_search
    search = SmokeSearch(
        given.chunk_id,
        given.question,
        given.channel_id,
        found_dense=given.found_dense,
        found_lexical=given.found_lexical,
    )
    return Validation(
        request.workspace_id,
        request.generation_id,
        request.actor or caller_name,
        search if request.HasField("smoke_search") else None,
    )


def checked(
    found: Checked, shown: generations_pb2.Generation
) -> generations_pb2.ValidateGenerationResponse:
    """What was checked, for the wire."""
    return generations_pb2.ValidateGenerationResponse(
        generation=shown,
        faults=found.reading.faults,
        wanted=_smoke_search(found.wanted) if found.wanted else None,
        sources=found.reading.sources,
        chunks=found.reading.chunks,
    )


def _smoke_search(wanted: SmokeSearch) -> generations_pb2.SmokeSearch:
    return generations_pb2.SmokeSearch(
        chunk_id=wanted.chunk_id,
        question=wanted.question,
        channel_id=wanted.channel_id,
        posted_from=timestamp(wanted.posted_from),
        posted_until=timestamp(wanted.posted_until),
    )
