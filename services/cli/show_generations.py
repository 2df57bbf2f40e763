"""Generations for a person, and as JSON."""

from __future__ import annotations

from collections.abc import Iterable

from google.protobuf.timestamp_pb2 import Timestamp

from recall.ingest.v1 import generations_pb2
from services.cli.as_json import Json, iso, source_name
from services.cli.render import table
from services.corpus import instant

_HEADS = ("generation", "of", "state", "embedder", "embedded", "calibration", "created")


def generation(wire: generations_pb2.Generation) -> Json:
    """One generation."""
    return {
        "generation_id": wire.generation_id,
        "workspace_id": wire.workspace_id,
        "source": source_name(wire.source),
        "collection": wire.collection,
        "is_sealed": wire.is_sealed,
        "state": state_name(wire.state),
        "embedder": wire.embedder,
        "embedder_fingerprint": wire.embedder_fingerprint,
        "width": wire.width,
        "chunker_version": wire.chunker_version,
        "pipeline_fingerprint": wire.pipeline_fingerprint,
        "corpus_fingerprint": wire.corpus_fingerprint,
        "parent_generation_id": wire.parent_generation_id,
        "calibration_status": wire.calibration_status,
        "created_at": _instant(wire, "created_at"),
        "validated_at": _instant(wire, "validated_at"),
        "promoted_at": _instant(wire, "promoted_at"),
        "superseded_at": _instant(wire, "superseded_at"),
        "chunks": wire.chunks,
        "chunks_without_vector": wire.chunks_without_vector,
        "failure_reason": wire.failure_reason,
    }


def validation(result: generations_pb2.ValidateGenerationResponse) -> Json:
    """What was read back and is wrong."""
    return {
        "generation": generation(result.generation),
        "sources": result.sources,
        "chunks": result.chunks,
        "faults": list(result.faults),
    }


def generation_table(listed: Iterable[generations_pb2.Generation]) -> str:
    """Generations, one a line, those that failed with the reason below."""
    generations = list(listed)
    if not generations:
        return "No generation yet."
    reasons = [
        f"{each.generation_id} failed: {each.failure_reason}"
        for each in generations
        if each.failure_reason
    ]
    return "\n".join((table(_HEADS, [_row(each) for each in generations]), *reasons))


def validation_text(result: generations_pb2.ValidateGenerationResponse) -> str:
    """The verdict, then one line a fault."""
    read = f"{result.sources} sources and {result.chunks} chunks read back"
    head = f"{result.generation.generation_id} is {state_name(result.generation.state)}: {read}"
    return "\n".join((f"{head}.", *(f"- {fault}" for fault in result.faults)))


def state_name(state: generations_pb2.GenerationState.ValueType) -> str:
    """ "building", "ready", "active", …"""
    return generations_pb2.GenerationState.Name(state).removeprefix("GENERATION_STATE_").lower()


def _row(each: generations_pb2.Generation) -> tuple[str, ...]:
    return (
        each.generation_id,
        each.collection or source_name(each.source),
        state_name(each.state),
        each.embedder,
        f"{each.chunks - each.chunks_without_vector}/{each.chunks}",
        each.calibration_status or "none",
        instant(each.created_at).strftime("%Y-%m-%d %H:%M"),
    )


def _instant(wire: generations_pb2.Generation, name: str) -> str | None:
    if not wire.HasField(name):  # type: ignore[arg-type]
        return None
    stamp: Timestamp = getattr(wire, name)
    return iso(stamp)
