"""Ordering messages as evidence: ask Jev, else Luna, else keep the order of the fusion."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

import structlog

from services.corpus import Message
from services.rerank.breaker import Breaker, Effect
from services.rerank.failures import (
    BreakerOpenError,
    NotConfiguredError,
    OutOfTimeError,
    TierError,
    TimedOutError,
)
from services.rerank.scoring import (
    JEV,
    LUNA,
    Body,
    Options,
    Scores,
    ScoringRequest,
    build_request,
    order,
    read_scores,
)

TIER_SECONDS = 2.0
TOTAL_SECONDS = 4.5
# Kept of the caller's deadline to send the order in.
MARGIN_SECONDS = 0.2
# Below this no reply can arrive: models answer in 0.3 s at best.
SHORTEST_TIER_SECONDS = 0.1

log = structlog.get_logger("rerank")

Decide = Callable[[Body], Awaitable[object]]
Clock = Callable[[], float]


class Tier(StrEnum):
    """What can produce an order."""

    JEV = "jev"
    LUNA = "luna"
    RRF = "rrf"


@dataclass(frozen=True)
class FailedTier:
    """A tier that was tried or skipped: stable cause word and one sentence."""

    tier: Tier
    cause: str
    detail: str


@dataclass(frozen=True)
class Ranking:
    """Positions of the messages, best first; scores (0 to 3) of the first ones as given.

    ``scores`` and ``model`` are empty when no model scored.
    """

    positions: tuple[int, ...]
    tier: Tier
    failed_tiers: tuple[FailedTier, ...] = ()
    scores: tuple[float, ...] = ()
    model: str = ""
    answerable: float | None = None


@dataclass
class ModelTier:
    """A decision model, how to ask it, and its breaker."""

    tier: Tier
    model: str
    decide: Decide
    breaker: Breaker = field(default_factory=Breaker)


async def not_configured(_: Body) -> object:
    """Stands in for asking a model when there is no key."""
    raise NotConfiguredError


def model_tiers(decide: Decide | None) -> tuple[ModelTier, ...]:
    """Jev, then Luna; ``decide`` None when no key is set."""
    ask = decide or not_configured
    return ModelTier(Tier.JEV, JEV, ask), ModelTier(Tier.LUNA, LUNA, ask)


class Reranker:
    """Goes through the tiers. Keeps the breakers, so there is one a process.

    ``clock`` is monotonic, in seconds.
    """

    def __init__(self, tiers: Sequence[ModelTier], options: Options, clock: Clock) -> None:
        self._tiers = tuple(tiers)
        self._options = options
        self._clock = clock

    async def rerank(
        self, question: str, messages: Sequence[Message], session_id: str, remaining_seconds: float
    ) -> Ranking:
        """Order the messages within ``remaining_seconds``, and within 4.5 s in any case.

        No failure of a tier raises: the order of the fusion is always there to return.
        """
        if not messages:
            return Ranking((), Tier.RRF)
        request = build_request(question, messages, self._options, session_id)
        if request.cut_texts:
            log.warning("texts_cut", messages=request.cut_texts)
        ends_at = self._clock() + min(TOTAL_SECONDS, remaining_seconds - MARGIN_SECONDS)
        failed: list[FailedTier] = []
        for tier in self._tiers:
            try:
                scores = await self._score(tier, request, ends_at)
            except TierError as failure:
                failed.append(_report(tier, failure))
            else:
                return _by_scores(len(messages), tier, scores, failed)
        return Ranking(tuple(range(len(messages))), Tier.RRF, tuple(failed))

    async def _score(self, tier: ModelTier, request: ScoringRequest, ends_at: float) -> Scores:
        """One attempt at one tier; its effect reaches the breaker however the attempt ends."""
        left = ends_at - self._clock()
        if left < SHORTEST_TIER_SECONDS:
            raise OutOfTimeError
        ticket = tier.breaker.admit(self._clock())
        if ticket is None:
            raise BreakerOpenError
        effect = Effect.FORGIVEN
        try:
            scores = await _ask(tier, request, left)
            effect = Effect.SUCCEEDED
            return scores
        except TierError as failure:
            effect = failure.effect
            raise
        finally:
            tier.breaker.record(ticket, effect, self._clock())


async def _ask(tier: ModelTier, request: ScoringRequest, left_seconds: float) -> Scores:
    """The tier's scores, within its own limit and what is left of the whole step."""
    try:
        async with asyncio.timeout(min(TIER_SECONDS, left_seconds)):
            return read_scores(await tier.decide(request.body(tier.model)), request)
    except TimeoutError:
        if left_seconds < TIER_SECONDS:
            raise OutOfTimeError from None
        raise TimedOutError(TIER_SECONDS) from None


def _report(tier: ModelTier, failure: TierError) -> FailedTier:
    # A bad key or a body that the API does not take needs a person; the rest passes.
    needs_person = failure.cause in ("http_400", "http_401", "http_402", "http_404")
    write = log.error if needs_person else log.info
    write("tier_failed", tier=tier.tier.value, cause=failure.cause, detail=failure.detail)
    return FailedTier(tier.tier, failure.cause, failure.detail)


def _by_scores(count: int, tier: ModelTier, scores: Scores, failed: list[FailedTier]) -> Ranking:
    return Ranking(
        positions=tuple(order(count, scores.values)),
        tier=tier.tier,
        failed_tiers=tuple(failed),
        scores=scores.values,
        model=scores.model,
        answerable=scores.answerable,
    )
