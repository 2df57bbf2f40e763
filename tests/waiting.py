"""Waiting for something that another task or process brings about."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

# Far beyond what any test needs; reached only when the thing never happens.
LIMIT_SECONDS = 60
INTERVAL_SECONDS = 0.03


async def until(reached: Callable[[], bool]) -> None:
    """Return once ``reached()`` holds. Raises TimeoutError when it never does."""
    async with asyncio.timeout(LIMIT_SECONDS):
        while True:
            if reached():
                return
            await asyncio.sleep(INTERVAL_SECONDS)
