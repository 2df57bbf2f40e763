"""The trust gate: a verdict for every hit, and their order. Pure.

Precedence of verdicts, the first that applies: invalid_metadata, not_yet_known,
ambiguous_supersession, superseded, expired, not_yet_valid, dependency_invalidated, low_confidence,
ok (RE-call's observed order, with its weak spots mended: docs/trust.md). Several hits may show one
item.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from services.retrieve.supersession import Chains, Item, Knowledge, Verdict, own_verdict


@dataclass(frozen=True)
class Hit:
    """One hit in rank order: what it shows and how confident it is (None: nothing calibrated)."""

    hit_id: str
    item_id: str
    confidence: float | None = None


@dataclass(frozen=True)
class Judged:
    """A hit with its verdict. ``superseded_by`` and ``supersedes`` are item ids or empty."""

    hit: Hit
    verdict: Verdict
    confidence: float | None
    superseded_by: str = ""
    supersedes: str = ""

    @property
    def is_ok(self) -> bool:
        """Whether it may be evidence."""
        return self.verdict is Verdict.OK


def judge(hits: Sequence[Hit], knowledge: Knowledge) -> list[Judged]:
    """Judge each hit and order them: ok first, else as given; a correction where what it replaced
    stood.

    Verdicts do not depend on the order of the hits. Without a threshold a hit that nothing speaks
    against is unverified.
    """
    chains = Chains(knowledge)
    raised = _raised(hits, chains)
    judged = [_judged(hit, raised, knowledge, chains) for hit in hits]
    return in_order(judged)


def in_order(judged: Sequence[Judged]) -> list[Judged]:
    """A correction takes the place before what it replaced, so that it is as near to the top as
    that was; then partitioned stably: ok first, then unverified, then the rest."""
    placed = _corrections_first(judged)
    groups = (
        [one for one in placed if one.is_ok],
        [one for one in placed if one.verdict is Verdict.UNVERIFIED],
        [one for one in placed if not one.is_ok and one.verdict is not Verdict.UNVERIFIED],
    )
    return [one for group in groups for one in group]


def successors_wanted(hits: Sequence[Hit], knowledge: Knowledge) -> list[str]:
    """Items that replace a hit and are not among the hits, in the order of what they replace."""
    chains = Chains(knowledge)
    shown = {hit.item_id for hit in hits}
    resolved = (chains.resolve(hit.item_id) for hit in hits)
    return list(dict.fromkeys(item for item in resolved if item and item not in shown))


def _judged(
    hit: Hit, raised: Mapping[str, tuple[float, str]], knowledge: Knowledge, chains: Chains
) -> Judged:
    confidence, supersedes = hit.confidence, ""
    if hit.item_id in raised:
        inherited, supersedes = raised[hit.item_id]
        confidence = max(confidence or 0.0, inherited) if confidence is not None else None
    verdict = _verdict(hit.item_id, confidence, knowledge, chains)
    return Judged(
        hit=hit,
        verdict=verdict,
        confidence=confidence,
        superseded_by=chains.resolve(hit.item_id) if verdict is Verdict.SUPERSEDED else "",
        supersedes=supersedes,
    )


def _verdict(
    item_id: str, confidence: float | None, knowledge: Knowledge, chains: Chains
) -> Verdict:
    item = knowledge.items.get(item_id, Item(item_id))
    own = own_verdict(item, knowledge.clocks)
    if own in (Verdict.INVALID_METADATA, Verdict.NOT_YET_KNOWN):
        return own
    if chains.is_ambiguous(item_id):
        return Verdict.AMBIGUOUS_SUPERSESSION
    if chains.is_superseded(item_id):
        return Verdict.SUPERSEDED
    if own is not None:
        return own
    if _has_bad_dependency(item, knowledge, chains):
        return Verdict.DEPENDENCY_INVALIDATED
    if knowledge.threshold is None or confidence is None:
        return Verdict.UNVERIFIED
    return Verdict.OK if confidence >= knowledge.threshold else Verdict.LOW_CONFIDENCE


def _has_bad_dependency(item: Item, knowledge: Knowledge, chains: Chains) -> bool:
    """Whether anything that it depends on, directly or not, does not hold any more."""
    waiting, seen = list(item.depends_on), {item.item_id}
    while waiting:
        needed = waiting.pop()
        if needed in seen:
            continue
        seen.add(needed)
        prerequisite = knowledge.items.get(needed, Item(needed))
        if (
            own_verdict(prerequisite, knowledge.clocks) is not None
            or chains.is_superseded(needed)
            or chains.is_ambiguous(needed)
        ):
            return True
        waiting.extend(prerequisite.depends_on)
    return False


def _raised(hits: Sequence[Hit], chains: Chains) -> dict[str, tuple[float, str]]:
    """For each item that replaces a hit: the confidence of the most confident one it replaces, and
    which that is. What matched the question was replaced by it, so it is as much about it."""
    raised: dict[str, tuple[float, str]] = {}
    for hit in hits:
        successor = chains.resolve(hit.item_id)
        if successor:
            found = (hit.confidence or 0.0, hit.item_id)
            raised[successor] = max(raised.get(successor, found), found)
    return raised


def _corrections_first(judged: Iterable[Judged]) -> list[Judged]:
    """A correction moves up to stand before what it replaced."""
    ordered: list[Judged] = []
    for one in judged:
        place = next(
            (
                position
                for position, earlier in enumerate(ordered)
                if earlier.superseded_by == one.hit.item_id
            ),
            len(ordered),
        )
        ordered.insert(place, one)
    return ordered
