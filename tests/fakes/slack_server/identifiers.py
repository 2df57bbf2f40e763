"""Ids, timestamps and the names of things: pure, and the same in every run."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Container
from datetime import datetime

MICROSECONDS = 1_000_000


def derived_id(prefix: str, *parts: str) -> str:
    """An id of Slack's shape (a letter and ten of A-Z, 2-7) that depends on the parts alone."""
    digest = hashlib.sha256("\0".join(parts).encode()).digest()
    return prefix + base64.b32encode(digest).decode()[:10]


def ts_of(microseconds: int) -> str:
    """Whole microseconds since the epoch, as Slack writes them."""
    return f"{microseconds // MICROSECONDS:010d}.{microseconds % MICROSECONDS:06d}"


def ts_from_iso(moment: str, taken: Container[str]) -> str:
    """The timestamp of an ISO 8601 moment, one hundred microseconds apart within a second."""
    microseconds = int(datetime.fromisoformat(moment).timestamp()) * MICROSECONDS + 100
    while ts_of(microseconds) in taken:
        microseconds += 100
    return ts_of(microseconds)


def is_ts(text: str) -> bool:
    """Whether a text is ten digits, a dot and six digits."""
    seconds, dot, fraction = text.partition(".")
    return bool(dot) and len(fraction) == 6 and (seconds + fraction).isdigit()


def padded_ts(text: str) -> str:
    """A bound given by a client, as text that sorts with timestamps; raises ValueError."""
    seconds, _, fraction = text.partition(".")
    if not (seconds.isdigit() and (fraction == "" or fraction.isdigit())):
        raise ValueError(text)
    return f"{int(seconds):010d}.{fraction[:6].ljust(6, '0')}"


def domain_of(name: str) -> str:
    """A workspace's part of its address, from its name."""
    return "-".join(name.lower().split())
