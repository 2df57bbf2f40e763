"""Token buckets, the gate and what a client is known by."""

from __future__ import annotations

import asyncio

import pytest

from services.gateway.limits import MOST_CLIENTS, Gate, TokenBuckets, client_key
from services.runtime.errors import CallError


class Clock:
    """A clock that a test turns."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_burst_passes_and_the_next_is_told_how_long_to_wait() -> None:
    buckets = TokenBuckets(per_minute=30, burst=3, clock=Clock())
    assert [buckets.take("a") for _ in range(4)] == [0, 0, 0, 2.0]


def test_who_waits_as_told_is_let_through_and_a_refused_try_costs_nothing() -> None:
    clock = Clock()
    buckets = TokenBuckets(per_minute=30, burst=1, clock=clock)
    buckets.take("a")
    clock.now += 1
    assert buckets.take("a") == pytest.approx(1.0)
    clock.now += 1
    assert buckets.take("a") == 0


def test_clients_do_not_share_a_bucket_and_a_rest_never_saves_up_more_than_a_burst() -> None:
    clock = Clock()
    buckets = TokenBuckets(per_minute=60, burst=2, clock=clock)
    buckets.take("a")
    clock.now += 3600
    assert [buckets.take("a") for _ in range(3)][:2] == [0, 0]
    assert buckets.take("a") > 0
    assert buckets.take("b") == 0


def test_no_flood_of_addresses_grows_the_memory() -> None:
    buckets = TokenBuckets(per_minute=60, burst=1, clock=Clock())
    for number in range(MOST_CLIENTS + 500):
        buckets.take(str(number))
    assert len(buckets._buckets) == MOST_CLIENTS
    assert buckets.take(str(MOST_CLIENTS + 499)) > 0


@pytest.mark.parametrize(
    ("address", "key"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:aaaa::1", "2001:db8:1:2::/64"),
        ("2001:db8:1:2:bbbb::9", "2001:db8:1:2::/64"),
        ("testclient", "testclient"),
        ("", ""),
    ],
)
def test_one_household_is_one_client(address: str, key: str) -> None:
    assert client_key(address) == key


async def test_a_full_gate_sends_away_and_a_left_place_is_free_again() -> None:
    gate = Gate(at_once=1, wait_seconds=0.01)
    async with gate.entered():
        with pytest.raises(CallError) as raised:
            async with gate.entered():
                raise AssertionError("entered a full gate")
    assert raised.value.retry_after_seconds
    async with gate.entered():
        pass


async def test_who_waits_at_the_gate_enters_when_a_place_is_left() -> None:
    gate = Gate(at_once=1, wait_seconds=30)
    entered = asyncio.Event()

    async def second() -> None:
        async with gate.entered():
            entered.set()

    async with gate.entered():
        waiting = asyncio.create_task(second())
        await asyncio.sleep(0)
        assert not entered.is_set()
    await waiting
    assert entered.is_set()
