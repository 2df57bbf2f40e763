"""Why a tier was not used: the stable cause word, a sentence for a person, the breaker's effect.

A detail never carries message text, a key, or the provider's own wording, which may quote either.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from services.rerank.breaker import Effect


class TierError(Exception):
    """A tier gave no usable scores. The next tier is tried; the request never fails for it."""

    def __init__(self, cause: str, detail: str, effect: Effect) -> None:
        super().__init__(f"{cause}: {detail}")
        self.cause = cause
        self.detail = detail
        self.effect = effect


class NotConfiguredError(TierError):
    """There is no key."""

    def __init__(self) -> None:
        detail = "OPEN_ROUTER is unset, so no decision model is asked."
        super().__init__("not_configured", detail, Effect.FORGIVEN)


class BreakerOpenError(TierError):
    """The tier failed too often lately and is left alone."""

    def __init__(self) -> None:
        detail = "The tier failed before and is left alone for up to 30 seconds."
        super().__init__("breaker_open", detail, Effect.FORGIVEN)


class TimedOutError(TierError):
    """The tier took longer than a tier may."""

    def __init__(self, seconds: float) -> None:
        detail = f"No complete reply within {seconds:g} seconds."
        super().__init__("timeout", detail, Effect.COUNTS)


class OutOfTimeError(TierError):
    """The time for the whole step, or the caller's deadline, ended before a tier's own limit."""

    def __init__(self) -> None:
        detail = "The call's deadline left too little time for this tier."
        super().__init__("deadline", detail, Effect.FORGIVEN)


class UnreachableError(TierError):
    """No reply at all: name not resolved, connection refused or reset, TLS failure."""

    def __init__(self, kind: str) -> None:
        detail = f"The Decisions API could not be reached ({kind})."
        super().__init__("unreachable", detail, Effect.COUNTS)


class MalformedReplyError(TierError):
    """A reply of status 200 that is not what the API documents."""

    def __init__(self, problem: str) -> None:
        super().__init__("malformed", f"The reply can not be used: {problem}.", Effect.COUNTS)


class RefusedError(TierError):
    """The model or a moderation step refused the content: nothing wrong with key or provider."""

    def __init__(self, where: str) -> None:
        super().__init__("refusal", f"The model refused to judge ({where}).", Effect.FORGIVEN)


REFUSAL_TYPES = frozenset({"content_policy_violation", "refusal"})
# Error types that blame this one request. Another question may well succeed.
INPUT_TYPES = frozenset(
    {
        "context_length_exceeded",
        "max_tokens_exceeded",
        "token_limit_exceeded",
        "string_too_long",
        "payload_too_large",
        "invalid_prompt",
    }
)
_ERROR_TYPE = re.compile(r"[a-z_]{1,40}")


def failure_of_status(status: int, document: object) -> TierError:
    """The failure that an HTTP status other than 200 and its body (None: no JSON) stand for."""
    error = _mapping(_mapping(document).get("error"))
    if _is_refusal(status, error):
        return RefusedError(f"HTTP {status}")
    detail = f"The Decisions API answered HTTP {status}{_named(error)}."
    return TierError(f"http_{status}", detail, _effect(status, error))


def failure_in_reply(value: object) -> TierError:
    """The failure that an ``error`` inside a reply of status 200 stands for."""
    error = _mapping(value)
    code = error.get("code")
    status = code if isinstance(code, int) and 100 <= code <= 599 else 0
    if _is_refusal(status, error):
        return RefusedError("error inside a reply")
    number = f" {status}" if status else ""
    detail = f"The reply of status 200 holds error{number}{_named(error)}."
    return TierError("error_in_reply", detail, _effect(status, error))


def _effect(status: int, error: Mapping[str, object]) -> Effect:
    kind = _error_type(error)
    if status in (401, 402) and not _is_passing_budget(error):
        return Effect.TRIPS
    if kind in INPUT_TYPES or status == 413:
        return Effect.FORGIVEN
    # 403 without permission_denied is a judgement on the content.
    if status == 403 and kind != "permission_denied":
        return Effect.FORGIVEN
    return Effect.COUNTS


def _is_refusal(status: int, error: Mapping[str, object]) -> bool:
    # Moderation sends no error_type but says what it flagged.
    flagged = status == 403 and "flagged_input" in _mapping(error.get("metadata"))
    return flagged or _error_type(error) in REFUSAL_TYPES


def _is_passing_budget(error: Mapping[str, object]) -> bool:
    """A 402 that only says that too much is in flight right now."""
    source = _mapping(error.get("metadata")).get("limit_source")
    return source == "openrouter_in_flight_budget"


def _error_type(error: Mapping[str, object]) -> str:
    kind = _mapping(error.get("metadata")).get("error_type")
    return kind if isinstance(kind, str) and _ERROR_TYPE.fullmatch(kind) else ""


def _named(error: Mapping[str, object]) -> str:
    kind = _error_type(error)
    return f" ({kind})" if kind else ""


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {}
