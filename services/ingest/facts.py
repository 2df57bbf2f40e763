"""Atomic facts and the evidence cards that carry them: values, hashes and windows. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import date, timedelta
from typing import Any

# A fact's parts that say what it is about; its object is the value.
_SUBJECT_PARTS = ("namespace", "subject", "predicate", "context")
_REQUIRED = ("namespace", "subject", "predicate", "object")
_OPTIONAL = ("context", "valid_from", "valid_until")
CARD_ID_CHARACTERS = 32


class FactError(ValueError):
    """A statement is not a fact; ``field`` names the part and ``problem`` how to mend it."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}")
        self.field = field
        self.problem = problem


@dataclass(frozen=True)
class Fact:
    """One statement. Both days of its window are included (UTC); None is open."""

    namespace: str
    subject: str
    predicate: str
    object: str
    context: str = ""
    valid_from: date | None = None
    valid_until: date | None = None

    @property
    def about(self) -> tuple[str, ...]:
        """What it is about: facts that are about the same can contradict each other."""
        return tuple(getattr(self, part) for part in _SUBJECT_PARTS)

    def as_json(self) -> dict[str, str]:
        """The fact as it is hashed and stored; days as YYYY-MM-DD, empty when open."""
        return {
            name: value.isoformat() if isinstance(value, date) else value or ""
            for name, value in asdict(self).items()
        }


@dataclass(frozen=True)
class Card:
    """What a trusted hit declared, fixed by its hash."""

    card_id: str
    generation_id: str
    channel_id: str
    source_uri: str
    source_sha256: str
    pipeline_fingerprint: str
    calibration_id: str
    facts: tuple[Fact, ...]
    card_sha256: str

    @property
    def is_intact(self) -> bool:
        """Whether its content matches its hash and its hash its id."""
        return self.card_sha256 == card_sha256(self) and self.card_id == card_id(self.card_sha256)


def read_fact(value: Mapping[str, Any]) -> Fact:
    """The fact of an object with the parts' names as keys. Raises FactError."""
    for name in value:
        if name not in (*_REQUIRED, *_OPTIONAL):
            raise FactError(name, f"is not a part of a fact: {', '.join(_REQUIRED + _OPTIONAL)}")
    texts = {name: _text(name, value.get(name)) for name in (*_REQUIRED, *_OPTIONAL)}
    for name in _REQUIRED:
        if not texts[name]:
            raise FactError(name, "must not be empty")
    window = {name: _day(name, texts.pop(name)) for name in ("valid_from", "valid_until")}
    fact = Fact(**texts, **window)  # type: ignore[arg-type]
    if fact.valid_from and fact.valid_until and fact.valid_until < fact.valid_from:
        raise FactError("valid_until", "must not be before valid_from")
    return fact


def declared_facts(declared: Iterable[Any]) -> tuple[Fact, ...]:
    """The well-formed facts of a document's frontmatter, in order; a build reports the others."""
    facts = []
    for value in declared:
        try:
            facts.append(read_fact(value))
        except (FactError, AttributeError, TypeError):
            continue
    return tuple(dict.fromkeys(facts))


def sealed_card(card: Card) -> Card:
    """The card with the hash and the id that its content gives it."""
    digest = card_sha256(card)
    return Card(**{**vars(card), "card_sha256": digest, "card_id": card_id(digest)})


def card_sha256(card: Card) -> str:
    """SHA-256 (hex) over everything but the hash and the id."""
    content = {**vars(card), "facts": [fact.as_json() for fact in card.facts]}
    del content["card_id"], content["card_sha256"]
    return canonical_sha256(content)


def card_id(digest: str) -> str:
    """The id of a card's content."""
    return f"card-{digest[:CARD_ID_CHARACTERS]}"


def canonical_sha256(content: Mapping[str, Any]) -> str:
    """SHA-256 (hex) over canonical JSON: sorted keys, no spaces, UTF-8."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def windows_overlap(left: Fact, right: Fact) -> bool:
    """Whether there is a day on which both hold."""
    return (left.valid_from or date.min) <= (right.valid_until or date.max) and (
        right.valid_from or date.min
    ) <= (left.valid_until or date.max)


def ended_by(fact: Fact, replacement: Fact) -> Fact | None:
    """What is left of a fact that another replaces from its first valid day on; None for nothing.

    A fact without a first day replaces the whole of the other.
    """
    if replacement.valid_from is None or replacement.valid_from <= (fact.valid_from or date.min):
        return None
    last = replacement.valid_from - timedelta(days=1)
    until = min(fact.valid_until or date.max, last)
    return Fact(**{**vars(fact), "valid_until": until})


def _text(name: str, value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, date):
        return value.isoformat()
    if not isinstance(value, str):
        raise FactError(name, "must be text")
    return value.strip()


def _day(name: str, text: str) -> date | None:
    if not text:
        return None
    try:
        day = date.fromisoformat(text)
    except ValueError:
        day = None
    if day is None or day.isoformat() != text:
        raise FactError(name, "must be a day such as 2026-08-03")
    return day
