"""Why no hit qualified, as one sentence for a person. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from services.retrieve.supersession import Chains, Item, Knowledge, Verdict
from services.retrieve.trust import Judged

MAX_NAME_CHARACTERS = 120

_REASONS: dict[Verdict, Callable[[str, Item], str]] = {
    Verdict.INVALID_METADATA: lambda name, _: (
        f"The best match, {name}, has validity dates that can not be read."
    ),
    Verdict.NOT_YET_KNOWN: lambda name, _: (
        f"The best match, {name}, was written after the instant asked about."
    ),
    Verdict.AMBIGUOUS_SUPERSESSION: lambda name, _: (
        f"Something replaces {name}, but several documents carry that name."
    ),
    Verdict.EXPIRED: lambda name, item: (
        f"The best match, {name}, held only until {item.valid_until}."
    ),
    Verdict.NOT_YET_VALID: lambda name, item: (
        f"The best match, {name}, holds only from {item.valid_from}."
    ),
    Verdict.DEPENDENCY_INVALIDATED: lambda name, _: (
        f"The best match, {name}, depends on something that does not hold any more."
    ),
    Verdict.LOW_CONFIDENCE: lambda _name, _item: (
        "Nothing found is certain enough to be an answer: probably nobody wrote about it."
    ),
}


def abstention(judged: Sequence[Judged], knowledge: Knowledge) -> str:
    """Why no hit is ok: what is wrong with the most confident one, of equals the first. Empty when
    one is ok."""
    if not judged or any(one.is_ok or one.verdict is Verdict.UNVERIFIED for one in judged):
        return ""
    best = max(judged, key=lambda one: one.confidence or 0.0)
    item = knowledge.items.get(best.hit.item_id, Item(best.hit.item_id))
    if best.verdict is Verdict.SUPERSEDED:
        return _superseded_reason(_name(item), best, knowledge)
    return _REASONS[best.verdict](_name(item), item)


def quoted(name: str) -> str:
    """A name as a reason shows it: no control characters, at most 120 characters, in quotes."""
    clean = "".join(character for character in name if character.isprintable())
    return f"“{clean[:MAX_NAME_CHARACTERS]}”"


def _superseded_reason(name: str, best: Judged, knowledge: Knowledge) -> str:
    last = best.superseded_by or Chains(knowledge).last(best.hit.item_id)
    successor = _name(knowledge.items.get(last, Item(last)))
    if best.superseded_by:
        return f"The best match, {name}, was replaced by {successor}."
    return f"The best match, {name}, was replaced by {successor}, which does not hold now."


def _name(item: Item) -> str:
    return quoted(item.name or item.item_id)
