"""Which item replaces which, and whether an item holds by itself. Pure.

An *item* is what edges, windows and dependencies are about: a document by its URI, or a chat
message by its id.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time
from enum import Enum


class Verdict(Enum):
    """What the gate thinks of a hit, in the order in which verdicts take precedence."""

    INVALID_METADATA = "invalid_metadata"
    NOT_YET_KNOWN = "not_yet_known"
    AMBIGUOUS_SUPERSESSION = "ambiguous_supersession"
    SUPERSEDED = "superseded"
    EXPIRED = "expired"
    NOT_YET_VALID = "not_yet_valid"
    DEPENDENCY_INVALIDATED = "dependency_invalidated"
    LOW_CONFIDENCE = "low_confidence"
    UNVERIFIED = "unverified"
    OK = "ok"


@dataclass(frozen=True)
class Item:
    """What is known of one item. ``name`` is how people call it; the dates are days in UTC, both
    inclusive; ``written_at`` None means since ever."""

    item_id: str
    name: str = ""
    written_at: datetime | None = None
    valid_from: date | None = None
    valid_until: date | None = None
    invalid_metadata: str = ""
    depends_on: tuple[str, ...] = ()


@dataclass(frozen=True)
class Edge:
    """``newer`` replaces ``older``, as asserted then; None means since ever."""

    newer: str
    older: str
    asserted_at: datetime | None = None
    is_ambiguous: bool = False


@dataclass(frozen=True)
class Clocks:
    """The present for validity windows, and the instant whose knowledge counts (None: today's)."""

    now: datetime
    known_as_of: datetime | None = None


@dataclass(frozen=True)
class Knowledge:
    """Everything the gate knows beside the hits: items by id, edges, and the threshold."""

    clocks: Clocks
    items: Mapping[str, Item] = field(default_factory=dict)
    edges: Sequence[Edge] = ()
    threshold: float | None = None


class Chains:
    """Which item replaces which, as known at the asked instant."""

    def __init__(self, knowledge: Knowledge) -> None:
        self._items = knowledge.items
        self._clocks = knowledge.clocks
        known = [edge for edge in knowledge.edges if self._is_known(edge)]
        self._ambiguous = {edge.older for edge in known if edge.is_ambiguous}
        self._next: dict[str, str] = {}
        # A dated claim beats an undated one, a later one an earlier one.
        for edge in sorted(known, key=_claim_order):
            if not edge.is_ambiguous:
                self._next[edge.older] = edge.newer
        self._replacing = set(self._next.values())

    def is_ambiguous(self, item_id: str) -> bool:
        """Whether something replaces a name that this item shares with others."""
        return item_id in self._ambiguous

    def is_superseded(self, item_id: str) -> bool:
        """Whether something that has begun to hold replaces it.

        A replacement that expired leaves the correction before it standing, but never revives what
        was corrected first.
        """
        later = self._begun(item_id)
        if not later:
            return False
        return item_id not in self._replacing or any(self.is_valid(each) for each in later)

    def resolve(self, item_id: str) -> str:
        """The last valid item that replaces it; empty when there is none."""
        valid = [each for each in self._begun(item_id) if self.is_valid(each)]
        return valid[-1] if valid else ""

    def last(self, item_id: str) -> str:
        """The last item that replaces it, valid or not; empty when there is none."""
        later = self._begun(item_id)
        return later[-1] if later else ""

    def is_valid(self, item_id: str) -> bool:
        """Whether an item's own window and metadata hold now."""
        return own_verdict(self._item(item_id), self._clocks) is None

    def _begun(self, item_id: str) -> list[str]:
        """What replaces it, step by step, without what does not hold yet; a cycle ends at its
        direct successor."""
        later: list[str] = []
        seen = {item_id}
        current = item_id
        while (following := self._next.get(current)) is not None:
            if following in seen:
                return later[:1]
            seen.add(following)
            later.append(following)
            current = following
        waiting = (Verdict.NOT_YET_VALID, Verdict.NOT_YET_KNOWN)
        return [
            each for each in later if own_verdict(self._item(each), self._clocks) not in waiting
        ]

    def _is_known(self, edge: Edge) -> bool:
        return edge.newer != edge.older and is_known(edge.asserted_at, self._clocks)

    def _item(self, item_id: str) -> Item:
        return self._items.get(item_id, Item(item_id))


def is_known(written_at: datetime | None, clocks: Clocks) -> bool:
    """Whether something was written by the asked instant, that instant included."""
    return written_at is None or clocks.known_as_of is None or written_at <= clocks.known_as_of


def own_verdict(item: Item, clocks: Clocks) -> Verdict | None:
    """What speaks against an item by itself; None when nothing does."""
    if item.invalid_metadata:
        return Verdict.INVALID_METADATA
    if not is_known(item.written_at, clocks):
        return Verdict.NOT_YET_KNOWN
    now = clocks.now if clocks.now.tzinfo else clocks.now.replace(tzinfo=UTC)
    if item.valid_until is not None and now > _end_of(item.valid_until):
        return Verdict.EXPIRED
    if item.valid_from is not None and now < _begin_of(item.valid_from):
        return Verdict.NOT_YET_VALID
    return None


def _claim_order(edge: Edge) -> tuple[bool, float, str]:
    dated = edge.asserted_at is not None
    return (dated, edge.asserted_at.timestamp() if edge.asserted_at else 0.0, edge.newer)


def _begin_of(day: date) -> datetime:
    return datetime.combine(day, time.min, UTC)


def _end_of(day: date) -> datetime:
    return datetime.combine(day, time.max, UTC)
