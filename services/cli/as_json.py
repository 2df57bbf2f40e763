"""Replies as the JSON objects that ``--json`` prints. Fields may be added, none renamed."""

from __future__ import annotations

from typing import Any

from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message as ProtoMessage
from google.protobuf.timestamp_pb2 import Timestamp

from recall.answer.v1 import answer_pb2
from recall.corpus.v1 import corpus_pb2
from recall.gateway.v1 import gateway_pb2
from recall.ingest.v1 import ingest_pb2, jobs_pb2
from recall.rerank.v1 import rerank_pb2
from recall.retrieve.v1 import retrieve_pb2
from services.corpus import instant
from services.runtime.errors import CallError

Json = dict[str, Any]


def outcome_name(outcome: corpus_pb2.Outcome.ValueType) -> str:
    """ "answered", "abstained", "unverified", "refused", "sources_only" or "suppressed"."""
    return _short(corpus_pb2.Outcome.Name(outcome), "OUTCOME_")


def tier_name(tier: rerank_pb2.Tier.ValueType) -> str:
    """ "jev", "luna" or "rrf"; empty when the evidence was not ordered."""
    name = _short(rerank_pb2.Tier.Name(tier), "TIER_")
    return "" if name == "unspecified" else name


def source_name(source: corpus_pb2.Source.ValueType) -> str:
    """ "slack", "synthetic" or "document"."""
    return _short(corpus_pb2.Source.Name(source), "SOURCE_")


def job_state_name(state: jobs_pb2.JobState.ValueType) -> str:
    """ "ready", "running", "done" or "dead"."""
    return _short(jobs_pb2.JobState.Name(state), "JOB_STATE_")


def iso(stamp: Timestamp) -> str:
    """ISO 8601 in UTC, microseconds only where there are any."""
    return instant(stamp).isoformat().replace("+00:00", "Z")


def message(wire: corpus_pb2.Message) -> Json:
    """One message."""
    return {
        "message_id": wire.message_id,
        "channel": wire.channel_name,
        "channel_id": wire.channel_id,
        "author": wire.author_name,
        "author_id": wire.author_id,
        "posted_at": iso(wire.posted_at),
        "edited_at": iso(wire.edited_at) if wire.HasField("edited_at") else None,
        "permalink": wire.permalink,
        "thread_root_id": wire.thread_root_id,
        "text": wire.text,
    }


def verdict_name(verdict: corpus_pb2.Verdict.ValueType) -> str:
    """``ok``, ``superseded`` and so on; ``unverified`` where nothing is calibrated."""
    return _short(corpus_pb2.Verdict.Name(verdict), "VERDICT_")


def hit(wire: corpus_pb2.Hit) -> Json:
    """One found message with its ranks and its verdict."""
    return message(wire.message) | {
        "fused_score": wire.fused_score,
        "dense_rank": wire.dense_rank if wire.HasField("dense_rank") else None,
        "lexical_rank": wire.lexical_rank if wire.HasField("lexical_rank") else None,
        "cosine": wire.cosine if wire.HasField("cosine") else None,
        "verdict": verdict_name(wire.verdict),
        "confidence": wire.confidence if wire.HasField("confidence") else None,
        "provenance": _plain(wire.provenance),
        "superseded_by": wire.superseded_by,
        "supersedes": wire.supersedes,
        "valid_from": wire.valid_from,
        "valid_until": wire.valid_until,
        "contributions": [_contribution(each) for each in wire.contributions],
    }


def search_result(reply: retrieve_pb2.SearchResponse) -> Json:
    """A search, as ``recall search --json`` prints it."""
    result = {
        "generation_id": reply.pin.generation_id,
        "abstained": reply.abstained,
        "reason": reply.reason,
        "confidence": reply.confidence if reply.HasField("confidence") else None,
        "threshold": reply.threshold if reply.HasField("threshold") else None,
        "calibration_id": reply.calibration_id,
        "messages": [hit(each) for each in reply.hits],
        "degraded": list(reply.degraded),
        "timings_ms": _rounded(reply.timings_ms),
    }
    if reply.HasField("explanation"):
        result["explanation"] = _plain(reply.explanation)
        result["weighed_signals"] = dict(reply.weighed_signals)
    return result


def refusal(refused: CallError) -> Json:
    """A search that was refused, with the fields of one that was not."""
    return {
        "refusal": refused.reason_name,
        "abstained": False,
        "reason": refused.message,
        "confidence": None,
        "messages": [],
    }


def answer(final: gateway_pb2.Answer) -> Json:
    """An answer, as ``recall ask --json`` prints it."""
    result = {
        "outcome": outcome_name(final.outcome),
        "text": final.text,
        "abstained": final.outcome == corpus_pb2.OUTCOME_ABSTAINED,
        "reason": final.reason,
        "refusal": final.refusal,
        "confidence": final.confidence if final.HasField("confidence") else None,
        "calibration_id": final.calibration_id,
        "citations": [message(each) for each in final.citations],
        "rerank_tier": tier_name(final.rerank_tier),
        "generation_id": final.generation_id,
        "degraded": list(final.degraded),
        "timings_ms": _rounded(final.timings_ms),
        "unverified_sources": [hit(each) for each in final.unverified_sources],
        "hits": [hit(each) for each in final.hits],
        "writer": final.writer,
    }
    if final.HasField("trace"):
        result["trace"] = _trace(final.trace)
    return result


def window(text: gateway_pb2.WindowText) -> Json:
    """A catch-up, summary or list of decisions."""
    return {
        "outcome": outcome_name(text.outcome),
        "text": text.text,
        "reason": text.reason,
        "citations": [message(each) for each in text.citations],
        "unverified_sources": [message(each) for each in text.unverified_sources],
        "messages_read": text.messages_read,
        "degraded": list(text.degraded),
        "timings_ms": _rounded(text.timings_ms),
    }


def decision(wire: answer_pb2.Decision) -> Json:
    """One decision."""
    return {
        "text": wire.text,
        "message_id": wire.message_id,
        "owner": wire.owner,
        "replaces_message_id": wire.replaces_message_id,
    }


def status(reply: gateway_pb2.GetStatusResponse) -> Json:
    """The stack's state."""
    return {
        "stages": [
            {"stage": each.stage, "serving": each.serving, "detail": each.detail}
            for each in reply.stages
        ],
        "workspaces": [_workspace(each) for each in reply.workspaces],
    }


def job(wire: jobs_pb2.Job) -> Json:
    """One job, as ``recall jobs --json`` prints it."""
    return {
        "workspace": wire.workspace_id,
        "job_id": wire.job_id,
        "kind": wire.kind,
        "state": job_state_name(wire.state),
        "attempts": wire.attempts,
        "max_attempts": wire.max_attempts,
        "last_error": wire.last_error,
        "created_at": iso(wire.created_at),
        "run_at": iso(wire.run_at),
        "finished_at": iso(wire.finished_at) if wire.HasField("finished_at") else None,
    }


def purge(wire: ingest_pb2.GetPurgeResponse) -> Json:
    """A purge's report, as ``recall purge --json`` prints it."""
    return {
        "scope": wire.scope,
        "is_finished": wire.is_finished,
        "deleted": dict(sorted(wire.deleted.items())),
        "requested_at": iso(wire.requested_at),
        "finished_at": iso(wire.finished_at) if wire.HasField("finished_at") else None,
    }


def import_report(report: ingest_pb2.ImportReport) -> Json:
    """The end of an import."""
    counts = report.counts
    return {
        "workspace_id": report.workspace_id,
        "generation_id": report.generation_id,
        "generation_created": report.generation_created,
        "received": counts.received,
        "imported": counts.imported,
        "unchanged": counts.unchanged,
        "updated": counts.updated,
        "deleted": counts.deleted,
        "skipped": dict(counts.skipped),
        "chunks_written": counts.chunks_written,
        "chunks_without_vector": report.chunks_without_vector,
        "empty_channels": list(report.empty_channels),
        "unknown_authors": list(report.unknown_authors),
        "notes": list(report.notes),
    }


def _workspace(wire: gateway_pb2.WorkspaceStatus) -> Json:
    return {
        "workspace_id": wire.workspace_id,
        "source": source_name(wire.source),
        "messages": wire.messages,
        "channels": wire.channels,
        "newest_at": iso(wire.newest_at) if wire.HasField("newest_at") else None,
        "generation_id": wire.generation_id,
        "embedder": wire.embedder,
        "chunks": wire.chunks,
        "chunks_without_vector": wire.chunks_without_vector,
    }


def _trace(wire: gateway_pb2.Trace) -> Json:
    return {
        "question": wire.question,
        "filter": _plain(wire.filter),
        "hits": [hit(each) for each in wire.hits],
        "explanation": _plain(wire.explanation),
        "rerank": _plain(wire.rerank),
    }


def _contribution(wire: corpus_pb2.Contribution) -> Json:
    return {
        "arm": _short(corpus_pb2.Arm.Name(wire.arm), "ARM_"),
        "chunk_id": wire.chunk_id,
        "chunk_kind": wire.chunk_kind,
        "rank": wire.rank,
        "score": wire.score,
    }


def _plain(wire: ProtoMessage) -> Json:
    plain: Json = MessageToDict(
        wire, preserving_proto_field_name=True, always_print_fields_with_no_presence=True
    )
    return plain


def _rounded(timings: Any) -> dict[str, float]:
    return {name: round(value, 1) for name, value in sorted(timings.items())}


def _short(name: str, prefix: str) -> str:
    return name.removeprefix(prefix).lower()
