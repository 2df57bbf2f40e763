"""One exception for every failed call, and its way to and from google.rpc.Status.

``CallError`` names what the caller can do. On the wire it is a ``google.rpc.Status`` with an
``ErrorInfo`` (reason from ``recall.error.v1.ErrorReason``, domain "recall") and, where waiting
helps, a ``RetryInfo``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import grpc
from google.protobuf.any_pb2 import Any
from google.protobuf.duration_pb2 import Duration
from google.rpc import code_pb2, error_details_pb2, status_pb2
from grpc_status import rpc_status

from recall.error.v1 import error_pb2

DOMAIN = "recall"
_PREFIX = "ERROR_REASON_"

Reason: TypeAlias = error_pb2.ErrorReason.ValueType


# Retrieve refused before it searched: an outcome of its own, not a fault.
_REFUSALS = (
    error_pb2.ERROR_REASON_CALIBRATION_MISSING,
    error_pb2.ERROR_REASON_CALIBRATION_UNCERTIFIED,
    error_pb2.ERROR_REASON_CALIBRATION_STALE,
    error_pb2.ERROR_REASON_EMBEDDER_MISMATCH,
)


class CallError(Exception):
    """A call that failed for a reason its caller can act on.

    ``message`` is one or two sentences for a person: what is wrong with which input, and the
    remedy. It never carries message text, tokens or stack traces.
    """

    def __init__(
        self,
        code: grpc.StatusCode,
        reason: Reason,
        message: str,
        *,
        retry_after_seconds: float | None = None,
        metadata: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.retry_after_seconds = retry_after_seconds
        self.metadata = dict(metadata or {})

    @property
    def reason_name(self) -> str:
        """The reason as it travels, without the enum's prefix."""
        return error_pb2.ErrorReason.Name(self.reason).removeprefix(_PREFIX)

    @property
    def is_refusal(self) -> bool:
        """Whether a search was refused before anything was retrieved."""
        return self.reason in _REFUSALS


def invalid(field: str, problem: str) -> CallError:
    """INVALID_ARGUMENT that names the field and says what it must be."""
    return CallError(
        grpc.StatusCode.INVALID_ARGUMENT,
        error_pb2.ERROR_REASON_INVALID_REQUEST,
        f"{field}: {problem}",
        metadata={"field": field},
    )


def unavailable(reason: Reason, message: str, retry_after_seconds: float = 2.0) -> CallError:
    """UNAVAILABLE: the same call may succeed later."""
    return CallError(
        grpc.StatusCode.UNAVAILABLE, reason, message, retry_after_seconds=retry_after_seconds
    )


def not_found(message: str) -> CallError:
    """NOT_FOUND, worded the same for what does not exist and for what may not be read."""
    return CallError(grpc.StatusCode.NOT_FOUND, error_pb2.ERROR_REASON_NOT_FOUND, message)


def deadline_too_short(message: str) -> CallError:
    """DEADLINE_EXCEEDED: the call ended, or would end, before its work could."""
    return CallError(
        grpc.StatusCode.DEADLINE_EXCEEDED, error_pb2.ERROR_REASON_DEADLINE_TOO_SHORT, message
    )


def internal(request_id: str) -> CallError:
    """INTERNAL: a defect of ours; the log holds the rest under the request id."""
    return CallError(
        grpc.StatusCode.INTERNAL,
        error_pb2.ERROR_REASON_INTERNAL,
        f"Internal error. The log has the details under request id {request_id}.",
        metadata={"request_id": request_id},
    )


def to_status(error: CallError) -> grpc.Status:
    """The error as a gRPC status with its details attached."""
    info = error_details_pb2.ErrorInfo(
        reason=error.reason_name, domain=DOMAIN, metadata=error.metadata
    )
    details = [_packed(info)]
    if error.retry_after_seconds is not None:
        delay = Duration()
        delay.FromMilliseconds(int(error.retry_after_seconds * 1000))
        details.append(_packed(error_details_pb2.RetryInfo(retry_delay=delay)))
    code = code_pb2.Code.Value(error.code.name)
    status = status_pb2.Status(code=code, message=error.message, details=details)
    wire: grpc.Status = rpc_status.to_status(status)
    return wire


def from_rpc_error(error: grpc.RpcError) -> CallError:
    """The ``CallError`` inside a failed call; UNAVAILABLE without details names the stage."""
    status = rpc_status.from_call(error)
    code = error.code()
    if status is None:
        return CallError(code, _reason_of(code), error.details() or code.name)
    reason, metadata = _reason_of(code), {}
    retry_after: float | None = None
    for detail in status.details:
        info, retry = error_details_pb2.ErrorInfo(), error_details_pb2.RetryInfo()
        if detail.Unpack(info):
            reason, metadata = _reason_named(info.reason), dict(info.metadata)
        elif detail.Unpack(retry):
            retry_after = retry.retry_delay.ToMilliseconds() / 1000
    return CallError(
        code, reason, status.message, retry_after_seconds=retry_after, metadata=metadata
    )


def _packed(detail: error_details_pb2.ErrorInfo | error_details_pb2.RetryInfo) -> Any:
    packed = Any()
    packed.Pack(detail)
    return packed


def _reason_named(name: str) -> Reason:
    try:
        return error_pb2.ErrorReason.Value(_PREFIX + name)
    except ValueError:
        return error_pb2.ERROR_REASON_UNSPECIFIED


def _reason_of(code: grpc.StatusCode) -> Reason:
    if code == grpc.StatusCode.UNAVAILABLE:
        return error_pb2.ERROR_REASON_STAGE_UNAVAILABLE
    if code == grpc.StatusCode.DEADLINE_EXCEEDED:
        return error_pb2.ERROR_REASON_DEADLINE_TOO_SHORT
    return error_pb2.ERROR_REASON_UNSPECIFIED
