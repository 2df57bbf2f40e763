"""How the app is reached and how events travel to it."""

from __future__ import annotations

import hashlib
import hmac
import json
from dataclasses import dataclass
from typing import Literal

from tests.fakes.slack_server.state import Json

Signature = Literal["right", "wrong", "missing", "other_bytes"]
Transport = Literal["http", "socket"]
# At once, after one minute, after five, as Slack does.
RETRY_DELAYS_SECONDS = (0.0, 60.0, 300.0)


@dataclass
class Addresses:
    """Where the app listens; with transport "socket" everything goes over Socket Mode."""

    events_url: str = ""
    commands_url: str = ""
    interactions_url: str = ""
    transport: Transport = "http"


@dataclass
class DeliverySettings:
    """``time_scale`` shortens the waits between retries; ``skew_seconds`` shifts the time sent.

    ``signature`` "other_bytes" signs the same JSON with other white space than is sent.
    """

    timeout_seconds: float = 3.0
    time_scale: float = 1.0
    skew_seconds: float = 0.0
    signature: Signature = "right"
    copies: int = 1
    thread_parent_events: bool = True


@dataclass(frozen=True)
class Signer:
    """Signs as Slack does: ``v0=`` HMAC-SHA256 of ``v0:timestamp:body``."""

    secret: str

    def headers(self, body: bytes, now: float, settings: DeliverySettings) -> dict[str, str]:
        """The two signature headers of a request."""
        timestamp = str(int(now + settings.skew_seconds))
        if settings.signature == "missing":
            return {"X-Slack-Request-Timestamp": timestamp}
        signed = _other_bytes(body) if settings.signature == "other_bytes" else body
        secret = self.secret + ("x" if settings.signature == "wrong" else "")
        base = b"v0:" + timestamp.encode() + b":" + signed
        digest = hmac.new(secret.encode(), base, hashlib.sha256).hexdigest()
        return {"X-Slack-Request-Timestamp": timestamp, "X-Slack-Signature": f"v0={digest}"}


def _other_bytes(body: bytes) -> bytes:
    try:
        parsed: Json = json.loads(body)
    except ValueError:
        return body + b" "
    return json.dumps(parsed, indent=1).encode()
