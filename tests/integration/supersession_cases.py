"""Generated cases of documents that replace each other: stale text nearer to the question. Pure."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

PAIRS, OUTSIDE, CHAINS, EXPIRED, EXPIRED_LAST, NAMESAKES = 90, 70, 40, 30, 20, 30
_SYLLABLES = [a + b for a in "bdfgklmnprstvz" for b in ("a", "e", "i", "o", "u")]
_ATTRIBUTES = (
    "request timeout",
    "retry limit",
    "upload quota",
    "session length",
    "backup window",
    "escalation contact",
)


@dataclass(frozen=True)
class Case:
    """One question. ``stale`` may never be trusted; ``first`` must be the first hit, empty when
    nothing that replaces it holds. Texts by path."""

    kind: str
    question: str
    stale: tuple[str, ...]
    first: str
    texts: dict[str, str] = field(default_factory=dict)


def cases() -> list[Case]:
    """All cases; the same on every call."""
    chance = random.Random(20261201)
    made: list[Case] = []
    kinds = {
        "pair": PAIRS,
        "outside": OUTSIDE,
        "chain": CHAINS,
        "expired": EXPIRED,
        "expired_last": EXPIRED_LAST,
        "namesakes": NAMESAKES,
    }
    for kind, count in kinds.items():
        for number in range(count):
            made.append(_case(kind, f"{kind.replace('_', '')}{number:03}", chance))
    return made


def _case(kind: str, name: str, chance: random.Random) -> Case:
    subject = "".join(chance.choices(_SYLLABLES, k=4)).capitalize()
    attribute = chance.choice(_ATTRIBUTES)
    question = f"What is the {attribute} of the {subject} service?"
    fact = f"The {attribute} of the {subject} service is {chance.randint(2, 90)}."
    new = f"{subject}: since the review it is {chance.randint(100, 900)}."
    # Not one word of the question, and none of its meaning.
    unlike = f"Agreed on Monday after lunch, number {chance.randint(100, 900)} applies from here."
    a, b, c = (f"{name}-{letter}.md" for letter in "abc")
    ended = "valid_until: 2026-01-31\n"
    if kind == "pair":
        return Case(kind, question, (a,), b, {a: fact, b: _replacing(a, new)})
    if kind == "outside":
        return Case(kind, question, (a,), b, {a: fact, b: _replacing(a, unlike)})
    if kind == "chain":
        texts = {a: fact, b: _replacing(a, fact + " Once more."), c: _replacing(b, unlike)}
        return Case(kind, question, (a, b), c, texts)
    if kind == "expired":
        return Case(kind, question, (a, b), "", {a: fact, b: _replacing(a, new, ended)})
    if kind == "expired_last":
        texts = {a: fact, b: _replacing(a, new), c: _replacing(b, fact, ended)}
        return Case(kind, question, (a, c), b, texts)
    old, kept, newer = f"{name}/x/note.md", f"{name}/y/note.md", f"{name}/z/note.md"
    other = f"The gardener of {name} waters roses."
    texts = {old: fact, kept: other, newer: _replacing(f"{name}/x/note", new)}
    return Case(kind, question, (old,), newer, texts)


def _replacing(name: str, text: str, more: str = "") -> str:
    return f"---\nsupersedes: {name}\n{more}---\n{text}\n"
