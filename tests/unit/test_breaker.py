"""The breaker: when a tier is left alone and when it is tried again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.rerank.breaker import Breaker, Effect, Ticket


def admitted(breaker: Breaker, now: float) -> Ticket:
    """The ticket of an attempt that must be admitted."""
    ticket = breaker.admit(now)
    assert ticket is not None
    return ticket


def attempt(breaker: Breaker, effect: Effect, now: float) -> None:
    breaker.record(admitted(breaker, now), effect, now)


def opened_at(now: float) -> Breaker:
    breaker = Breaker()
    attempt(breaker, Effect.TRIPS, now)
    return breaker


@pytest.mark.parametrize(
    ("failed_at", "is_open"),
    [
        ([0, 1, 2, 3], False),
        ([0, 1, 2, 3, 4], True),
        ([0, 7, 14, 21, 29.9], True),
        ([0, 7, 14, 21, 30], False),
        ([0, 10, 20, 30, 40, 50], False),
    ],
)
def test_five_failures_within_thirty_seconds_open(failed_at: list[float], is_open: bool) -> None:
    breaker = Breaker()
    for now in failed_at:
        attempt(breaker, Effect.COUNTS, now)
    assert (breaker.admit(failed_at[-1]) is None) is is_open


def test_a_bad_key_opens_at_once() -> None:
    assert opened_at(0).admit(0) is None


def test_refusals_and_successes_never_open() -> None:
    breaker = Breaker()
    for now in range(20):
        attempt(breaker, Effect.FORGIVEN, now)
        attempt(breaker, Effect.SUCCEEDED, now)
    assert breaker.admit(20) is not None


def test_it_stays_open_for_thirty_seconds() -> None:
    breaker = opened_at(100)
    assert breaker.admit(129.9) is None
    assert breaker.admit(130) == Ticket(trial=True)


def test_only_one_trial_runs_at_a_time() -> None:
    breaker = opened_at(0)
    admitted(breaker, 30)
    assert breaker.admit(31) is None


def test_a_good_trial_closes_and_old_failures_are_forgotten() -> None:
    breaker = opened_at(0)
    attempt(breaker, Effect.SUCCEEDED, 30)
    for now in (31, 32, 33, 34):
        attempt(breaker, Effect.COUNTS, now)
    assert breaker.admit(35) == Ticket(trial=False)


@pytest.mark.parametrize("effect", [Effect.COUNTS, Effect.TRIPS])
def test_one_bad_trial_opens_for_another_thirty_seconds(effect: Effect) -> None:
    breaker = opened_at(0)
    attempt(breaker, effect, 40)
    assert breaker.admit(69) is None
    assert breaker.admit(70) is not None


def test_a_trial_that_tells_nothing_leaves_the_next_call_to_be_the_trial() -> None:
    breaker = opened_at(0)
    attempt(breaker, Effect.FORGIVEN, 30)
    assert breaker.admit(30) == Ticket(trial=True)


def test_late_news_of_an_earlier_attempt_changes_nothing_while_open() -> None:
    breaker = Breaker()
    slow = admitted(breaker, 0)
    attempt(breaker, Effect.TRIPS, 1)
    breaker.record(slow, Effect.SUCCEEDED, 2)
    assert breaker.admit(3) is None
    assert breaker.admit(31) is not None


@given(st.lists(st.tuples(st.sampled_from(Effect), st.floats(0, 50)), max_size=60))
def test_a_tier_is_never_left_alone_for_longer_than_thirty_seconds(
    history: list[tuple[Effect, float]],
) -> None:
    breaker, now = Breaker(), 0.0
    for effect, pause in history:
        now += pause
        ticket = breaker.admit(now)
        if ticket:
            breaker.record(ticket, effect, now)
    assert breaker.admit(now + 30) is not None
