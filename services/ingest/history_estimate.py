"""How long reading history will take, from what was read so far. Pure.

A channel's unread part is taken to hold as many pages a day as its read part; one that was not
begun, or whose beginning is not known, as many as the others on average. Channels and threads are
read side by side, each at one call an interval, from when Slack lets the next call through.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Unread:
    """A channel whose first reading is not finished.

    ``pages_read`` pages span the last ``read_seconds``; ``left_seconds`` are between them and the
    channel's beginning, or what is kept of it. None where not known.
    """

    pages_read: int
    read_seconds: float | None
    left_seconds: float | None


@dataclass(frozen=True)
class ThreadCalls:
    """Calls that known threads need: those that wait, and all that were ever found."""

    waiting: int
    all: int


@dataclass(frozen=True)
class NextSlots:
    """Seconds until the next call of each method: within an interval, or longer after a 429."""

    history_seconds: float = 0.0
    replies_seconds: float = 0.0


def seconds_left(
    channels: Sequence[Unread],
    threads: ThreadCalls,
    pages_read: int,
    interval_seconds: float,
    slots: NextSlots = NextSlots(),
) -> float | None:
    """Seconds until all is read; None when nothing is left, or nothing can be told.

    ``pages_read`` are the pages in which all known threads were found.
    """
    estimates = [_pages_left(channel) for channel in channels]
    known = [pages for pages in estimates if pages is not None]
    if channels and not known:
        return None
    pages = sum(known) * len(channels) / len(known) if known else 0.0
    expected = threads.all / pages_read * pages if pages_read else 0.0
    calls = threads.waiting + expected
    seconds = max(
        _seconds(pages, interval_seconds, slots.history_seconds),
        _seconds(calls, interval_seconds, slots.replies_seconds),
    )
    return seconds or None


def _seconds(calls: float, interval_seconds: float, first_seconds: float) -> float:
    """Until the last of some calls is over. A slot within the interval is the usual one."""
    return calls * interval_seconds + max(0.0, first_seconds - interval_seconds) if calls else 0.0


def _pages_left(channel: Unread) -> float | None:
    """At least one page, the one that shows that there is none left."""
    if not channel.pages_read or not channel.read_seconds or channel.left_seconds is None:
        return None
    return max(1.0, channel.pages_read * channel.left_seconds / channel.read_seconds)
