"""The port of the writers, and what they hand over before anything is checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from services.answer.decisions import Decision
from services.answer.evidence import Evidence
from services.corpus import Message


@dataclass(frozen=True)
class Draft:
    """A text before its citations are checked.

    ``given`` are the messages that the writer was really given: the only ones it may cite.
    ``reason`` says why the text is no answer; empty when it may be one. ``model`` is empty for
    the extractive writer.
    """

    text: str
    given: tuple[Message, ...]
    reason: str = ""
    model: str = ""


@dataclass(frozen=True)
class DecisionsDraft:
    """Decisions before they are checked. ``refusal`` says why there are none to check."""

    given: tuple[Message, ...]
    decisions: list[Decision] = field(default_factory=list)
    refusal: str = ""
    model: str = ""


class Writer(Protocol):
    """Writes from what it is given. Raises CallError (UNAVAILABLE) when it can not write."""

    @property
    def name(self) -> str:
        """``openai`` or ``extractive``."""
        ...

    async def answer(
        self, question: str, evidence: Sequence[Evidence], safety_identifier: str
    ) -> Draft:
        """An answer from evidence, best first."""
        ...

    async def catch_up(self, scope: str, messages: Sequence[Message]) -> Draft:
        """What happened in messages in time order."""
        ...

    async def summary(self, scope: str, messages: Sequence[Message]) -> Draft:
        """A summary of messages in time order."""
        ...

    async def rewrite(self, question: str, thread: Sequence[Message]) -> Draft:
        """A question that needs no thread; an empty text when this writer can not say."""
        ...

    async def decisions(self, scope: str, messages: Sequence[Message]) -> DecisionsDraft:
        """The decisions in messages in time order."""
        ...
