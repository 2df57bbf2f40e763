"""The health of a process that serves nothing: a listener for probes, only where a port is set."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from services.runtime.config import Settings
from services.runtime.server import Listener, Servicers, serving


def read_health_listener(settings: Settings, process: str) -> Listener | None:
    """Where ``process`` tells its health: RECALL_<PROCESS>_HOST and _PORT; None without a port."""
    port = settings.integer(f"RECALL_{process}_PORT", 0, low=0, high=65535)
    host = settings.text(f"RECALL_{process}_HOST", "127.0.0.1")
    settings.done()
    return Listener(host, port) if port else None


@asynccontextmanager
async def telling_health(
    listener: Listener | None, ready: Callable[[], Awaitable[bool]]
) -> AsyncIterator[None]:
    """Answer health checks for the length of a block. Raises PortTakenError."""
    if listener is None:
        yield
        return
    async with serving(listener, None, Servicers(lambda _: None, (), ready)):
        yield
