"""What becomes of a claimed fact: the sixteen decisions and the order in which they are tried.

Pure: the claim, what is known of its cards, the facts that hold and the clock go in; one decision
comes out. The order and the names are those of the described system's provenance controller.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from enum import StrEnum

from services.ingest.facts import Card, Fact, windows_overlap


class Verdict(StrEnum):
    """How a claim was decided, named as on the wire."""

    APPLIED = "APPLIED"
    DUPLICATE = "DUPLICATE"
    CARD_NOT_FOUND = "CARD_NOT_FOUND"
    CARD_TAMPERED = "CARD_TAMPERED"
    SOURCE_CHANGED = "SOURCE_CHANGED"
    VALIDITY_EXPIRED = "VALIDITY_EXPIRED"
    VALIDITY_NOT_STARTED = "VALIDITY_NOT_STARTED"
    GENERATION_MISMATCH = "GENERATION_MISMATCH"
    LINEAGE_MISMATCH = "LINEAGE_MISMATCH"
    TRUST_UNAVAILABLE = "TRUST_UNAVAILABLE"
    UNSUPPORTED_CLAIM = "UNSUPPORTED_CLAIM"
    CONTRADICTION_WITHOUT_SUPERSESSION = "CONTRADICTION_WITHOUT_SUPERSESSION"
    FRESH_SEARCH_UNAVAILABLE = "FRESH_SEARCH_UNAVAILABLE"
    FRESH_SEARCH_INSUFFICIENT = "FRESH_SEARCH_INSUFFICIENT"
    LEDGER_UNAVAILABLE = "LEDGER_UNAVAILABLE"
    MATERIALIZATION_UNAVAILABLE = "MATERIALIZATION_UNAVAILABLE"


# The ledger can not know: it was not certified, or a search did not confirm it.
ABSTENTIONS = frozenset({Verdict.TRUST_UNAVAILABLE, Verdict.FRESH_SEARCH_INSUFFICIENT})
# An outage decides nothing: it is not recorded, and the same request may come again.
OUTAGES = frozenset({Verdict.FRESH_SEARCH_UNAVAILABLE, Verdict.LEDGER_UNAVAILABLE})


@dataclass(frozen=True)
class CurrentSource:
    """A card's document as its generation holds it now."""

    sha256: str
    facts: tuple[Fact, ...]
    valid_from: date | None
    valid_until: date | None


@dataclass(frozen=True)
class Fresh:
    """What a new trusted search of one collection found."""

    was_made: bool
    generation_id: str
    calibration_id: str
    trusted_source_uris: frozenset[str]


@dataclass(frozen=True)
class Standing:
    """One named card and how it stands now. ``card`` None: it does not exist for the caller.

    ``serving_generation_id`` serves the card's collection; ``pipeline_fingerprint`` is that
    generation's; ``published_calibration_id`` is empty when none is published for it.
    """

    card_id: str
    card: Card | None = None
    serving_generation_id: str = ""
    pipeline_fingerprint: str = ""
    published_calibration_id: str = ""
    current: CurrentSource | None = None
    fresh: Fresh | None = None


@dataclass(frozen=True)
class HeldFact:
    """An assertion that was not wholly ended, and what is left of its window.

    ``is_replaced``: documents that still back it are all replaced by the claim's, as authored.
    """

    event_id: str
    fact: Fact
    is_replaced: bool


@dataclass(frozen=True)
class Decision:
    """The outcome. ``asserted_event_id`` for DUPLICATE; ``ended`` are replaced assertions."""

    verdict: Verdict
    explanation: str
    asserted_event_id: str = ""
    ended: tuple[HeldFact, ...] = ()

    @property
    def is_assertion(self) -> bool:
        """Whether the fact enters the ledger."""
        return self.verdict in (Verdict.APPLIED, Verdict.MATERIALIZATION_UNAVAILABLE)


Check = Callable[[Standing, date], bool]


def decide(
    claim: Fact, cards: Sequence[Standing], held: Sequence[HeldFact], today: date
) -> Decision:
    """The decision. ``today`` is the present day in UTC.

    Each check is tried on every card before the next one, so that the order of the cards does not
    matter. One card that declares the claim and is confirmed by the fresh search is enough; no
    card may fail a check.
    """
    refusal = next(_refusals(cards, today), None) or _unsupported(claim, cards)
    if refusal is None:
        refusal = _unconfirmed(declaring(claim, cards))
    return refusal or _against_the_ledger(claim, held)


def declaring(claim: Fact, cards: Sequence[Standing]) -> list[Standing]:
    """The cards that declare the very fact."""
    return [one for one in cards if one.card is not None and claim in one.card.facts]


def _refusals(cards: Sequence[Standing], today: date) -> Iterator[Decision]:
    for verdict, fails, explanation in _CHECKS:
        for standing in cards:
            if fails(standing, today):
                named = f"{explanation} (card {standing.card_id!r})."
                yield Decision(verdict, named)


def _card(standing: Standing) -> Card:
    # The first check has refused what does not exist.
    assert standing.card is not None
    return standing.card


def _differs(standing: Standing, _: date) -> bool:
    return standing.current is None or standing.current.facts != _card(standing).facts


def _is_untrusted(standing: Standing, _: date) -> bool:
    card = _card(standing)
    return not card.calibration_id or card.calibration_id != standing.published_calibration_id


def _has_expired(standing: Standing, today: date) -> bool:
    current = standing.current
    return current is not None and (current.valid_until or date.max) < today


def _has_not_begun(standing: Standing, today: date) -> bool:
    current = standing.current
    return current is not None and today < (current.valid_from or date.min)


_CHECKS: tuple[tuple[Verdict, Check, str], ...] = (
    (
        Verdict.CARD_NOT_FOUND,
        lambda standing, _: standing.card is None,
        "There is no such evidence card that you can read; search again for cards",
    ),
    (
        Verdict.CARD_TAMPERED,
        lambda standing, _: not _card(standing).is_intact,
        "The card's content does not match its hash",
    ),
    (
        Verdict.GENERATION_MISMATCH,
        lambda standing, _: _card(standing).generation_id != standing.serving_generation_id,
        "The card is of a generation that does not serve any more; search again for a new card",
    ),
    (
        Verdict.LINEAGE_MISMATCH,
        lambda standing, _: _card(standing).pipeline_fingerprint != standing.pipeline_fingerprint,
        "The card was made with another pipeline; search again for a new card",
    ),
    (
        Verdict.SOURCE_CHANGED,
        _differs,
        "The document does not declare any more what the card says; search again for a new card",
    ),
    (
        Verdict.UNSUPPORTED_CLAIM,
        lambda standing, _: not _card(standing).facts,
        "The card declares no fact, and prose never authorises one",
    ),
    (
        Verdict.TRUST_UNAVAILABLE,
        _is_untrusted,
        "No published calibration of the generation judged the card; calibrate, then search again",
    ),
    (Verdict.VALIDITY_EXPIRED, _has_expired, "The document's validity has ended"),
    (Verdict.VALIDITY_NOT_STARTED, _has_not_begun, "The document's validity has not begun"),
    (
        Verdict.SOURCE_CHANGED,
        lambda standing, _: (
            standing.current is not None
            and standing.current.sha256 != _card(standing).source_sha256
        ),
        "The document changed since the card was made; search again for a new card",
    ),
)


def _unsupported(claim: Fact, cards: Sequence[Standing]) -> Decision | None:
    if declaring(claim, cards):
        return None
    return Decision(
        Verdict.UNSUPPORTED_CLAIM,
        "No card declares this very fact: every part and both days must be equal.",
    )


def _unconfirmed(declared: Sequence[Standing]) -> Decision | None:
    if any(_is_confirmed(standing) for standing in declared):
        return None
    if any(standing.fresh is not None and standing.fresh.was_made for standing in declared):
        return Decision(
            Verdict.FRESH_SEARCH_INSUFFICIENT,
            "A new search does not find a declaring document that can be trusted.",
        )
    return Decision(
        Verdict.FRESH_SEARCH_UNAVAILABLE,
        "The new search that must confirm the fact could not be made. Send the request again.",
    )


def _is_confirmed(standing: Standing) -> bool:
    fresh, card = standing.fresh, _card(standing)
    return (
        fresh is not None
        and fresh.was_made
        and fresh.generation_id == card.generation_id
        and fresh.calibration_id == standing.published_calibration_id
        and card.source_uri in fresh.trusted_source_uris
    )


def _against_the_ledger(claim: Fact, held: Sequence[HeldFact]) -> Decision:
    about = [one for one in held if one.fact.about == claim.about]
    for one in about:
        if one.fact == claim:
            return Decision(
                Verdict.DUPLICATE, "The fact was asserted before.", asserted_event_id=one.event_id
            )
    conflicting = [
        one for one in about if one.fact.object != claim.object and windows_overlap(one.fact, claim)
    ]
    for one in conflicting:
        if not one.is_replaced:
            return Decision(
                Verdict.CONTRADICTION_WITHOUT_SUPERSESSION,
                f"Event {one.event_id!r} asserts another value for an overlapping time. Declare "
                "in the newer document's frontmatter that it supersedes the older one.",
            )
    return Decision(Verdict.APPLIED, "The fact is recorded.", ended=tuple(conflicting))
