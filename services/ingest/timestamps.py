"""Instants exact to the microsecond. A Slack ts is text and never passes through a float."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

_TS = re.compile(r"(\d{1,12})(?:\.(\d{1,6}))?", re.ASCII)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LAST_SECOND = int((datetime.max.replace(tzinfo=UTC) - _EPOCH).total_seconds()) - 1


def exact_ts(value: object) -> str | None:
    """A Slack ts as text with six decimals; None when the value is not one.

    Text and whole numbers are taken; a float has lost digits already and is refused, and so is a
    seventh decimal: cutting it could give two messages one key. Leading zeros go: with them one
    message would have two keys.
    """
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        return None
    parts = _TS.fullmatch(str(value).strip())
    if parts is None or int(parts[1]) > _LAST_SECOND:
        return None
    return f"{int(parts[1])}.{parts[2] or '':0<6}"


def instant_of(ts: str) -> datetime:
    """The UTC instant of an exact ts, from its two whole numbers."""
    seconds, microseconds = ts.split(".")
    return _EPOCH + timedelta(seconds=int(seconds), microseconds=int(microseconds))


def iso_instant(text: str) -> datetime | None:
    """The UTC instant of an ISO 8601 text; without an offset it is UTC. None when it is none."""
    try:
        moment = datetime.fromisoformat(text.strip())
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
