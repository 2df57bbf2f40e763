"""What a page of history tells beside its messages: how far it goes, and its threads. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from services.ingest.blocks import Json, string
from services.ingest.timestamps import exact_ts
from services.ingest.versions import edit_order


@dataclass(frozen=True)
class Root:
    """A message outside any thread, or a thread's first; what it tells of its replies."""

    ts: str
    reply_count: int
    latest_reply_ts: str


def shown_ts(rows: Iterable[Json]) -> list[str]:
    """The ts of every row that has one."""
    return [ts for row in rows if (ts := exact_ts(row.get("ts")))]


def lowest(given: Iterable[str]) -> str:
    """The earliest of some ts; empty without one. Whole numbers are compared, never a float."""
    return min(filter(None, given), key=lambda ts: edit_order(ts, None), default="")


def highest(given: Iterable[str]) -> str:
    """The latest of some ts; empty without one."""
    return max(filter(None, given), key=lambda ts: edit_order(ts, None), default="")


def is_past(ts: str, bound: str) -> bool:
    """Whether a page that goes down to ``ts`` has reached a bound; an empty bound is never."""
    return bool(ts and bound) and edit_order(ts, None) <= edit_order(bound, None)


def roots_of(rows: Iterable[Json]) -> list[Root]:
    """The rows that are no replies. A reply that is shown in the channel too is none."""
    roots = []
    for row in rows:
        ts = exact_ts(row.get("ts"))
        if ts and (exact_ts(row.get("thread_ts")) or ts) == ts:
            latest = exact_ts(row.get("latest_reply")) or ""
            roots.append(Root(ts, _count(row.get("reply_count")), latest))
    return roots


def without_root(rows: Iterable[Json], root_ts: str) -> list[Json]:
    """The replies of a page of a thread."""
    return [row for row in rows if exact_ts(row.get("ts")) != root_ts]


def _count(value: object) -> int:
    digits = string(value)
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) <= 9 else 0
