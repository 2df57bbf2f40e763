"""How far a question trusts, and what a refusal looks like. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from google.protobuf.timestamp_pb2 import Timestamp

from recall.corpus.v1 import corpus_pb2
from recall.gateway.v1 import gateway_pb2
from services.runtime.errors import CallError

REFUSED_TEXT = "This can not be answered with trust yet, so nothing was searched."


@dataclass(frozen=True)
class Trust:
    """What to do without a certified calibration, and both clocks; unset clocks mean now."""

    mode: corpus_pb2.TrustMode.ValueType = corpus_pb2.TRUST_MODE_UNSPECIFIED
    valid_at: Timestamp | None = None
    known_as_of: Timestamp | None = None


def trust_of(request: gateway_pb2.AskRequest | gateway_pb2.SearchRequest) -> Trust:
    """The trust that a request asks for."""
    return Trust(
        mode=request.trust_mode,
        valid_at=request.valid_at if request.HasField("valid_at") else None,
        known_as_of=request.known_as_of if request.HasField("known_as_of") else None,
    )


def clocks_of(request: gateway_pb2.ReasonRequest) -> Trust:
    """Strict, with both clocks of a request."""
    return Trust(
        mode=corpus_pb2.TRUST_MODE_STRICT,
        valid_at=request.valid_at if request.HasField("valid_at") else None,
        known_as_of=request.known_as_of if request.HasField("known_as_of") else None,
    )


def refused(error: CallError, timings_ms: Mapping[str, float]) -> gateway_pb2.Answer:
    """The end of an ask that was refused."""
    return gateway_pb2.Answer(
        outcome=corpus_pb2.OUTCOME_REFUSED,
        text=REFUSED_TEXT,
        reason=error.message,
        refusal=error.reason_name,
        generation_id=error.metadata.get("generation_id", ""),
        timings_ms=timings_ms,
    )
