"""The call being served: its id, its caller and the time it has left.

The server's interceptor sets it; clients read it to pass the id and the deadline on.
"""

from __future__ import annotations

import time
from contextvars import ContextVar
from dataclasses import dataclass

from services.runtime.callers import Caller
from services.runtime.errors import deadline_too_short

# Each hop keeps this much of its deadline for itself, so that the caller hears a real error
# instead of its own timeout.
HOP_MARGIN_SECONDS = 0.05


@dataclass(frozen=True)
class Call:
    """One call in progress. ``deadline`` is on the monotonic clock; None means no limit."""

    request_id: str
    caller: Caller | None
    deadline: float | None


current: ContextVar[Call | None] = ContextVar("call", default=None)


def caller() -> Caller:
    """The caller of the call in progress. Only valid inside a served call."""
    call = current.get()
    if call is None or call.caller is None:
        raise LookupError("no call with a caller is in progress")
    return call.caller


def request_id() -> str:
    """The id of the call in progress, or an empty string outside of one."""
    call = current.get()
    return call.request_id if call else ""


def remaining_seconds(default: float) -> float:
    """Seconds left for downstream work, one hop's margin taken off; at most ``default``.

    Raises CallError DEADLINE_EXCEEDED when nothing is left.
    """
    call = current.get()
    if call is None or call.deadline is None:
        return default
    left = call.deadline - time.monotonic() - HOP_MARGIN_SECONDS
    if left <= 0:
        raise deadline_too_short("The deadline is over. Ask again with more time.")
    return min(left, default)
