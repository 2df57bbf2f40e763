"""What the tools answer. Pure: protos in, JSON values out.

Every search and every ask ends in one of three outcomes, each with its reason: ``refused`` before
anything was searched, ``abstained`` because nothing qualified, or ``answered``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from google.protobuf.timestamp_pb2 import Timestamp

from recall.corpus.v1 import corpus_pb2
from recall.gateway.v1 import gateway_pb2
from recall.ingest.v1 import ledger_pb2
from recall.retrieve.v1 import retrieve_pb2
from services.corpus import instant
from services.gateway.ingest_files import Ingested
from services.runtime.errors import CallError

Json = dict[str, Any]

REFUSED, ABSTAINED, ANSWERED = "refused", "abstained", "answered"


def refused(error: CallError) -> Json:
    """A search that trust refused: nothing was retrieved."""
    return {
        "outcome": REFUSED,
        "refusal": error.reason_name,
        "reason": error.message,
        "hits": [],
    }


def search_result(
    found: retrieve_pb2.SearchResponse, cards: Sequence[ledger_pb2.EvidenceCard]
) -> Json:
    """Hits with verdict, confidence and provenance; cards stand with their documents' first hit."""
    return {
        "outcome": ABSTAINED if found.abstained else ANSWERED,
        "reason": found.reason,
        "confidence": found.confidence if found.HasField("confidence") else None,
        "calibration_id": found.calibration_id,
        "generation_id": found.pin.generation_id,
        "hits": [hit(one) for one in found.hits],
        "evidence_cards": [card(one) for one in cards],
        "degraded": list(found.degraded),
    }


def answer_result(answer: gateway_pb2.Answer) -> Json:
    """An answer; ``outcome`` has more values than a search's when a text did not hold."""
    return {
        "outcome": corpus_pb2.Outcome.Name(answer.outcome).removeprefix("OUTCOME_").lower(),
        "refusal": answer.refusal,
        "reason": answer.reason,
        "text": answer.text,
        "confidence": answer.confidence if answer.HasField("confidence") else None,
        "calibration_id": answer.calibration_id,
        "generation_id": answer.generation_id,
        "citations": [message(one) for one in answer.citations],
        "hits": [hit(one) for one in answer.hits],
        "degraded": list(answer.degraded),
    }


def hit(found: corpus_pb2.Hit) -> Json:
    """One hit."""
    given = found.provenance
    return message(found.message) | {
        "verdict": corpus_pb2.Verdict.Name(found.verdict).removeprefix("VERDICT_").lower(),
        "confidence": found.confidence if found.HasField("confidence") else None,
        "superseded_by": found.superseded_by,
        "supersedes": found.supersedes,
        "valid_from": found.valid_from,
        "valid_until": found.valid_until,
        "provenance": {
            "source_uri": given.source_uri,
            "version": given.source_version,
            "sha256": given.source_sha256,
            "generation_id": given.generation_id,
            "indexed_at": iso(given.indexed_at) if given.HasField("indexed_at") else None,
        },
    }


def message(found: corpus_pb2.Message) -> Json:
    """A message or a piece of a document."""
    return {
        "message_id": found.message_id,
        "channel": found.channel_name,
        "author": found.author_name,
        "posted_at": iso(found.posted_at),
        "permalink": found.permalink,
        "text": found.text,
    }


def card(found: ledger_pb2.EvidenceCard) -> Json:
    """An evidence card: what ``recall_apply_fact`` needs."""
    return {
        "card_id": found.card_id,
        "source_uri": found.source_uri,
        "facts": [fact(one) for one in found.facts],
    }


def fact(found: ledger_pb2.Fact) -> Json:
    """A fact."""
    return {
        "namespace": found.namespace,
        "subject": found.subject,
        "predicate": found.predicate,
        "object": found.object,
        "context": found.context,
        "valid_from": found.valid_from,
        "valid_until": found.valid_until,
    }


def ingested(done: Ingested) -> Json:
    """What became of changed documents."""
    return {
        "generation_id": done.generation_id,
        "state": done.state,
        "reason": done.reason,
        "carried": done.carried,
        "read": done.read,
        "problems": list(done.problems),
    }


def decision_result(decided: ledger_pb2.ApplyFactResponse) -> Json:
    """What became of a fact."""
    name = ledger_pb2.FactDecision.Name(decided.decision).removeprefix("FACT_DECISION_")
    return {
        "decision": name,
        "event_id": decided.event_id,
        "reason": decided.explanation,
        "superseded_event_ids": list(decided.superseded_event_ids),
    }


def ledger_fact(found: ledger_pb2.LedgerFact) -> Json:
    """A recorded fact."""
    return fact(found.fact) | {
        "event_id": found.event_id,
        "source_uris": list(found.source_uris),
        "recorded_at": iso(found.recorded_at),
        "actor": found.actor,
    }


def status_result(reply: gateway_pb2.GetStatusResponse) -> Json:
    """The stages, and the workspaces that the token may read."""
    return {
        "stages": [
            {"stage": one.stage, "serving": one.serving, "detail": one.detail}
            for one in reply.stages
        ],
        "workspaces": [
            {
                "workspace_id": one.workspace_id,
                "source": corpus_pb2.Source.Name(one.source).removeprefix("SOURCE_").lower(),
                "messages": one.messages,
                "generation_id": one.generation_id,
                "chunks": one.chunks,
                "chunks_without_vector": one.chunks_without_vector,
            }
            for one in reply.workspaces
        ],
    }


def iso(stamp: Timestamp) -> str:
    """ISO 8601 in UTC."""
    return instant(stamp).isoformat().replace("+00:00", "Z")
