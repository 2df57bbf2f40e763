"""Rules of waking those who wait for jobs."""

from __future__ import annotations

import asyncio

from services.ingest.wakeups import Wakeups, woken_within


def test_a_wake_up_reaches_every_waiter_of_its_kind_and_nobody_else() -> None:
    wakeups = Wakeups()
    with (
        wakeups.waiting(("event", "purge")) as urgent,
        wakeups.waiting(("event",)) as events,
        wakeups.waiting(("command",)) as commands,
    ):
        wakeups.wake("event")
        assert [each.is_set() for each in (urgent, events, commands)] == [True, True, False]


def test_a_wake_up_without_a_kind_reaches_everybody() -> None:
    wakeups = Wakeups()
    with wakeups.waiting(("event",)) as events, wakeups.waiting(("command",)) as commands:
        wakeups.wake()
        assert events.is_set() and commands.is_set()


def test_closing_wakes_everybody_and_says_so_to_those_who_come_later() -> None:
    wakeups = Wakeups()
    with wakeups.waiting(("event",)) as event:
        wakeups.close()
        assert event.is_set() and wakeups.is_closed


def test_a_waiter_that_left_is_forgotten() -> None:
    wakeups = Wakeups()
    with wakeups.waiting(("event",)) as event:
        pass
    wakeups.wake("event")
    assert not event.is_set()


async def test_a_wake_up_between_looking_and_waiting_is_not_lost() -> None:
    wakeups = Wakeups()
    with wakeups.waiting(("event",)) as event:
        event.clear()
        wakeups.wake("event")
        async with asyncio.timeout(30):
            await woken_within(event, 3600)


async def test_a_wait_ends_without_a_wake_up() -> None:
    event = asyncio.Event()
    await woken_within(event, 0.01)
    assert not event.is_set()
