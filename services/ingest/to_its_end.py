"""Work that must end although its call is cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import suppress


async def to_its_end(work: Coroutine[None, None, None]) -> None:
    """Wait for work however often its call is cancelled: a client that went away cancels it."""
    task = asyncio.ensure_future(work)
    while not task.done():
        with suppress(asyncio.CancelledError):
            await asyncio.shield(task)
