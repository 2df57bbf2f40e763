"""What a reasoning has found, what it may still spend, and where it looks next. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from recall.corpus.v1 import corpus_pb2
from recall.gateway.v1 import gateway_pb2
from services.runtime.errors import invalid

# What of a message leads on: more words would drown the question's own.
LEAD_WORDS = 40

_LIMITS = {
    "steps": (12, 32),
    "hops": (1, 8),
    "evidence_tokens": (2_048, 100_000),
    "milliseconds": (30_000, 60_000),
}


@dataclass(frozen=True)
class Budget:
    """Limits. ``evidence_tokens`` are words between white space."""

    steps: int
    hops: int
    evidence_tokens: int
    milliseconds: int


@dataclass(frozen=True)
class Lead:
    """Words to search for, and the message that they come from; none for the question."""

    words: str
    hop: int = 0
    message_id: str = ""


def budget_of(wanted: gateway_pb2.ReasonBudget) -> Budget:
    """The limits with their defaults. Raises CallError INVALID_ARGUMENT that names the field."""
    values = {}
    for name, (default, most) in _LIMITS.items():
        value = getattr(wanted, name)
        if not 0 <= value <= most:
            raise invalid(f"budget.{name}", f"must be from 1 to {most}, or 0 for {default}")
        values[name] = value or default
    return Budget(**values)


@dataclass
class Trail:
    """Evidence in the order in which it was found, each message once, within the budget."""

    question: str
    budget: Budget
    evidence: list[corpus_pb2.Hit] = field(default_factory=list)
    tokens: int = 0
    steps: int = 0
    hops: int = 0
    exhausted: str = ""
    _seen: set[str] = field(default_factory=set)
    _leads: deque[Lead] = field(default_factory=deque)

    def __post_init__(self) -> None:
        self._leads.append(Lead(self.question))

    @property
    def is_unfinished(self) -> bool:
        """Whether something is left to search."""
        return bool(self._leads)

    def next_lead(self) -> Lead | None:
        """The next search, nearest to the question first; None when nothing may be searched."""
        if not self._leads:
            return None
        if self.steps >= self.budget.steps:
            self.exhausted = "steps"
            return None
        lead = self._leads.popleft()
        self.steps += 1
        self.hops = max(self.hops, lead.hop)
        return lead

    def follow(self, lead: Lead, hits: Iterable[corpus_pb2.Hit]) -> int:
        """Take the trusted hits of a step; how many are new. Each may lead one hop further."""
        new = 0
        for hit in hits:
            if hit.message.message_id in self._seen:
                continue
            words = hit.message.text.split()
            if self.tokens + len(words) > self.budget.evidence_tokens:
                self.exhausted = "evidence_tokens"
                break
            self._seen.add(hit.message.message_id)
            self.evidence.append(hit)
            self.tokens += len(words)
            new += 1
            if lead.hop < self.budget.hops:
                led = " ".join((self.question, *words[:LEAD_WORDS]))
                self._leads.append(Lead(led, lead.hop + 1, hit.message.message_id))
        return new


def trusted(hits: Iterable[corpus_pb2.Hit]) -> list[corpus_pb2.Hit]:
    """The hits that may be evidence."""
    return [hit for hit in hits if hit.verdict == corpus_pb2.VERDICT_OK]
