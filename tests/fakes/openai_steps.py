"""What the OpenAI stand-in can be told to do, one value a request."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

Body: TypeAlias = dict[str, Any]


@dataclass(frozen=True)
class Text:
    """A completed response; ``text`` may be computed from the request body."""

    text: str | Callable[[Body], str]


@dataclass(frozen=True)
class Refusal:
    """A completed response whose only content part is a refusal."""

    refusal: str = "I can't help with that."


@dataclass(frozen=True)
class Incomplete:
    """A response cut by a limit: ``max_output_tokens`` or ``content_filter``."""

    text: str = ""
    reason: str = "max_output_tokens"


@dataclass(frozen=True)
class Failed:
    """A response with status ``failed`` inside a 200."""

    code: str = "server_error"
    message: str = "The model had an error."


@dataclass(frozen=True)
class ErrorFrame:
    """An ``error`` event in the stream; without a stream, an error object inside a 200."""

    code: str = "server_error"
    message: str = "Something went wrong."


@dataclass(frozen=True)
class CutOff:
    """The connection closes in the middle of the body."""

    text: str = "half of an answer"


@dataclass(frozen=True)
class RawBody:
    """Any status, content type and body: a proxy's HTML page, JSON of another shape."""

    body: str = "<html><body>Bad gateway</body></html>"
    status: int = 200
    content_type: str = "text/html"


@dataclass(frozen=True)
class HttpError:
    """An error status with OpenAI's error body."""

    status: int
    code: str | None = None
    message: str = "Refused by the stand-in."
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Slow:
    """Waits before the step ``then``; a stopping server ends the wait."""

    seconds: float
    then: Step


@dataclass(frozen=True)
class Vectors:
    """An embeddings reply with a fault: vectors missing, of another width, or out of order."""

    missing: int = 0
    width: int | None = None
    reversed_order: bool = False


Step: TypeAlias = (
    Text
    | Refusal
    | Incomplete
    | Failed
    | ErrorFrame
    | CutOff
    | RawBody
    | HttpError
    | Slow
    | Vectors
)


def unauthorized() -> HttpError:
    """401 as for a wrong key."""
    return HttpError(401, "invalid_api_key", "Incorrect API key provided.")


def rate_limited(retry_after_ms: int = 10) -> HttpError:
    """429 that names its waiting time in ``retry-after-ms``."""
    headers = {"retry-after-ms": str(retry_after_ms)}
    return HttpError(429, "rate_limit_exceeded", "Rate limit reached.", headers)


def insufficient_quota() -> HttpError:
    """429 that no waiting mends."""
    return HttpError(429, "insufficient_quota", "You exceeded your current quota.")
