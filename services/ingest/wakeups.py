"""Waking those who wait for a job: one listening connection a process, any number of waiters."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Collection, Iterator

import psycopg

from services.ingest import queue
from services.runtime import db

# A wake-up can be lost with its connection; a job that waits for its time sends none.
POLL_SECONDS = 1.0
RECONNECT_SECONDS = 2.0

ANY_KIND = ""


class Wakeups:
    """The waiters of one process, each for some kinds of jobs."""

    def __init__(self) -> None:
        self._waiting: dict[asyncio.Event, frozenset[str]] = {}
        self.is_closed = False

    def wake(self, kind: str = ANY_KIND) -> None:
        """A job of this kind may be claimable; without a kind, one of any kind."""
        for event, kinds in self._waiting.items():
            if kind == ANY_KIND or kind in kinds:
                event.set()

    def close(self) -> None:
        """Wake everybody, now and from now on: nothing is waited for any more."""
        self.is_closed = True
        self.wake()

    @contextlib.contextmanager
    def waiting(self, kinds: Collection[str]) -> Iterator[asyncio.Event]:
        """An event that is set by every wake-up of these kinds from here on.

        Clear it before looking for a job, so that no wake-up between looking and waiting is lost.
        """
        event = asyncio.Event()
        self._waiting[event] = frozenset(kinds)
        try:
            yield event
        finally:
            del self._waiting[event]


async def woken_within(event: asyncio.Event, seconds: float) -> None:
    """Return once the event is set, at the latest after ``seconds``."""
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(event.wait(), seconds)


async def listen(url: str, wake: Callable[[str], None]) -> None:
    """Call ``wake`` with the kind of each job that is enqueued, until cancelled.

    Reconnects by itself; what happened meanwhile is one wake-up of any kind.
    """
    while True:
        with contextlib.suppress(psycopg.Error):
            await _notifications(url, wake)
        await asyncio.sleep(RECONNECT_SECONDS)


async def _notifications(url: str, wake: Callable[[str], None]) -> None:
    async with await psycopg.AsyncConnection.connect(
        url, autocommit=True, connect_timeout=db.CONNECT_SECONDS
    ) as connection:
        await connection.execute(b"LISTEN " + queue.CHANNEL.encode())
        wake(ANY_KIND)
        async for notification in connection.notifies():
            wake(notification.payload)
