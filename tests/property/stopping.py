"""Stops a coroutine at one of its await points, as a cancellation or as the end of its process."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Coroutine, Generator
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any


class ProcessEnded(BaseException):
    """Nobody is left to clean up: connections are lost where they stand."""


class End(Enum):
    """How a run is stopped."""

    CANCELLED = auto()
    FAILED = auto()
    KILLED = auto()


class InjectedError(RuntimeError):
    """The run fails for a reason of its own."""


@dataclass
class _StoppedAt(Awaitable[None]):
    """Awaits a coroutine and stops it where it waits for the ``step``-th time, from 1."""

    work: Coroutine[Any, Any, object]
    step: int
    end: End
    was_stopped: bool = False

    def __await__(self) -> Generator[Any, Any, None]:
        waiting = self.work.__await__()
        waits = 0
        failure: BaseException | None = None
        while True:
            try:
                future = waiting.throw(failure) if failure else waiting.send(None)
            except StopIteration:
                return
            waits += 1
            failure = None
            if waits == self.step:
                failure = self._stop(future)
            if failure is None:
                try:
                    yield future
                except BaseException as error:
                    failure = error

    def _stop(self, future: Any) -> BaseException | None:
        self.was_stopped = True
        if self.end is End.CANCELLED:
            task = asyncio.current_task()
            assert task is not None
            task.cancel()
            return None
        if future is not None:
            future._asyncio_future_blocking = False
        return InjectedError("stopped") if self.end is End.FAILED else ProcessEnded()


async def stopped_at(work: Coroutine[Any, Any, object], step: int, end: End) -> bool:
    """Run until done or stopped; whether it was done. Raises what the run itself raises."""
    stopping = _StoppedAt(work, step, end)

    async def run() -> None:
        await stopping

    task = asyncio.ensure_future(run())
    await asyncio.wait([task])
    # Whatever a stopped run ends with, it ended by that.
    error = None if task.cancelled() else task.exception()
    if error is not None and not stopping.was_stopped:
        raise error
    return not task.cancelled() and error is None
