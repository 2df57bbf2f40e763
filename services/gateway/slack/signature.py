"""Whether a request was signed by Slack. Pure.

The signature is ``v0=`` and the hexadecimal HMAC-SHA256, keyed with the app's signing secret, of
``v0:<timestamp>:<body>``, over the bytes as they arrived: a body parsed and written again has
another digest. https://docs.slack.dev/authentication/verifying-requests-from-slack
"""

from __future__ import annotations

import hashlib
import hmac
from enum import Enum

MOST_AGE_SECONDS = 300
VERSION = "v0"


class Refusal(Enum):
    """Why a request is not taken for Slack's; for the log, never with body or secret."""

    MISSING = "a signature header is missing or malformed"
    AGE = "the timestamp is more than five minutes from this machine's clock"
    DIGEST = "the digest does not fit the signing secret"


def refusal(secret: str, timestamp: str, signature: str, body: bytes, now: float) -> Refusal | None:
    """None for a genuine request; ``now`` is in seconds since 1970."""
    if not (timestamp.isascii() and timestamp.isdigit() and len(timestamp) <= 12 and signature):
        return Refusal.MISSING
    if abs(now - int(timestamp)) > MOST_AGE_SECONDS:
        return Refusal.AGE
    expected = sign(secret, timestamp, body)
    if hmac.compare_digest(expected.encode(), signature.encode("utf-8", "surrogatepass")):
        return None
    return Refusal.DIGEST


def sign(secret: str, timestamp: str, body: bytes) -> str:
    """The signature that Slack sends with a body."""
    base = f"{VERSION}:{timestamp}:".encode() + body
    return f"{VERSION}={hmac.new(secret.encode(), base, hashlib.sha256).hexdigest()}"
