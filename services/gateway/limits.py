"""How much one client, and all of them together, may ask of the page."""

from __future__ import annotations

import asyncio
import ipaddress
import math
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import grpc

from recall.error.v1 import error_pb2
from services.runtime.errors import CallError

# A client that was not seen for longest is forgotten first; its bucket would be full again.
MOST_CLIENTS = 10_000
IPV6_SITE_PREFIX = 64


class TokenBuckets:
    """A token bucket per client: ``burst`` at once, then ``per_minute`` evenly."""

    def __init__(self, per_minute: float, burst: int, clock: Callable[[], float]) -> None:
        self._per_second = per_minute / 60
        self._burst = float(burst)
        self._clock = clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, client: str) -> float:
        """Take one token. Returns 0, or the seconds until there is one."""
        now = self._clock()
        tokens, filled_at = self._buckets.pop(client, (self._burst, now))
        tokens = min(self._burst, tokens + (now - filled_at) * self._per_second)
        wait = 0.0 if tokens >= 1 else (1 - tokens) / self._per_second
        self._buckets[client] = (tokens if wait else tokens - 1, now)
        if len(self._buckets) > MOST_CLIENTS:
            self._buckets.popitem(last=False)
        return wait


class Gate:
    """At most ``at_once`` inside; others wait ``wait_seconds`` and are then sent away."""

    def __init__(self, at_once: int, wait_seconds: float) -> None:
        self._free = asyncio.Semaphore(at_once)
        self._wait_seconds = wait_seconds

    @asynccontextmanager
    async def entered(self) -> AsyncIterator[None]:
        """Inside for the length of the block. Raises CallError RESOURCE_EXHAUSTED when full."""
        try:
            await asyncio.wait_for(self._free.acquire(), self._wait_seconds)
        except TimeoutError:
            raise busy(self._wait_seconds) from None
        try:
            yield
        finally:
            self._free.release()


def client_key(address: str) -> str:
    """What one client is known by: its IPv4 address, or the /64 of its IPv6 address."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv4Address):
        return str(parsed)
    if parsed.ipv4_mapped:
        return str(parsed.ipv4_mapped)
    return str(ipaddress.ip_network((parsed, IPV6_SITE_PREFIX), strict=False))


def too_many(wait_seconds: float) -> CallError:
    """RESOURCE_EXHAUSTED for a client that asks too often."""
    seconds = max(1, math.ceil(wait_seconds))
    return CallError(
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        error_pb2.ERROR_REASON_RATE_LIMITED,
        f"That was too many questions in a short time. Ask again in {seconds} s.",
        retry_after_seconds=float(seconds),
    )


def busy(wait_seconds: float) -> CallError:
    """RESOURCE_EXHAUSTED while others' questions take all there is."""
    seconds = max(1, math.ceil(wait_seconds))
    return CallError(
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        error_pb2.ERROR_REASON_RATE_LIMITED,
        f"Many questions are being answered right now. Ask again in {seconds} s.",
        retry_after_seconds=float(seconds),
    )
