"""The one bootstrap of every gRPC process: health, reflection, interceptors, drain.

A service's ``__main__`` reads its settings, builds its servicers and calls ``run``:

    run("rerank", Listener("127.0.0.1", 7404), callers, assemble)

where ``assemble`` is an async context manager that yields a ``Servicers``: how to register the
servicers, and a readiness check. Readiness reflects the database, never a model provider.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field

import grpc
import structlog
from grpc_health.v1 import health as grpc_health
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from services.runtime import logs
from services.runtime.callers import Callers
from services.runtime.client import server_options
from services.runtime.config import ConfigError
from services.runtime.interceptors import CallInterceptor

DRAIN_SECONDS = 25.0
READINESS_INTERVAL_SECONDS = 1.0
MAX_CONCURRENT_CALLS = 256
# Health name that says only that the process runs, for liveness probes: a database that is away is
# no reason to restart it.
ALIVE = "live"

log = structlog.get_logger("server")


class PortTakenError(Exception):
    """The port is in use; the message names it and the remedy."""


@dataclass(frozen=True)
class Listener:
    """Where a server listens. Port 0 lets the system choose (tests)."""

    host: str
    port: int


@dataclass(frozen=True)
class Servicers:
    """What a process serves.

    ``register`` adds the servicers to a server; ``names`` are the full service names for health
    and reflection; ``ready`` is asked every second. ``drain`` is told when the server begins to
    stop, so that calls that wait for something end early.
    """

    register: Callable[[grpc.aio.Server], None]
    names: tuple[str, ...]
    ready: Callable[[], Awaitable[bool]] = field(default=lambda: _always())
    drain: Callable[[], None] = field(default=lambda: None)


async def _always() -> bool:
    return True


@dataclass
class RunningServer:
    """A started server and the port it got."""

    server: grpc.aio.Server
    health: grpc_health.aio.HealthServicer
    port: int
    names: tuple[str, ...]
    watcher: asyncio.Task[None]
    drain: Callable[[], None]

    async def stop(self, grace_seconds: float) -> None:
        """Say NOT_SERVING, let calls in progress finish, stop."""
        self.watcher.cancel()
        self.drain()
        await self.health.enter_graceful_shutdown()
        await self.server.stop(grace_seconds)


async def start(listener: Listener, callers: Callers | None, servicers: Servicers) -> RunningServer:
    """Start serving. Raises PortTakenError."""
    server = grpc.aio.server(
        interceptors=[CallInterceptor(callers)],
        options=server_options(),
        maximum_concurrent_rpcs=MAX_CONCURRENT_CALLS,
    )
    servicers.register(server)
    health = grpc_health.aio.HealthServicer()
    health_pb2_grpc.add_HealthServicer_to_server(health, server)
    reflection.enable_server_reflection(
        (*servicers.names, "grpc.health.v1.Health", reflection.SERVICE_NAME), server
    )
    try:
        port = server.add_insecure_port(f"{listener.host}:{listener.port}")
    except RuntimeError:
        raise PortTakenError(
            f"Port {listener.port} is taken. Stop what uses it or set another PORT_BASE."
        ) from None
    await health.set(ALIVE, health_pb2.HealthCheckResponse.SERVING)
    await _report(health, servicers)
    await server.start()
    watcher = asyncio.create_task(_watch(health, servicers))
    return RunningServer(server, health, port, servicers.names, watcher, servicers.drain)


async def _watch(health: grpc_health.aio.HealthServicer, servicers: Servicers) -> None:
    while True:
        await asyncio.sleep(READINESS_INTERVAL_SECONDS)
        await _report(health, servicers)


async def _report(health: grpc_health.aio.HealthServicer, servicers: Servicers) -> None:
    statuses = health_pb2.HealthCheckResponse
    status = statuses.SERVING if await servicers.ready() else statuses.NOT_SERVING
    for name in ("", *servicers.names):
        await health.set(name, status)


@asynccontextmanager
async def serving(
    listener: Listener, callers: Callers | None, servicers: Servicers
) -> AsyncIterator[RunningServer]:
    """A server for the length of a block (tests and embedders of the bootstrap)."""
    running = await start(listener, callers, servicers)
    try:
        yield running
    finally:
        await running.stop(0)


Assemble = Callable[[], AbstractAsyncContextManager[Servicers]]


async def serve(listener: Listener, callers: Callers, assemble: Assemble) -> None:
    """Serve until SIGTERM or SIGINT, then drain."""
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    async with assemble() as servicers:
        running = await start(listener, callers, servicers)
        log.info("listening", host=listener.host, port=running.port)
        await stopping.wait()
        log.info("draining", seconds=DRAIN_SECONDS)
        await running.stop(DRAIN_SECONDS)


def run(service: str, listener: Listener, callers: Callers, assemble: Assemble) -> None:
    """Configure the log and serve; a port that is taken ends the process with one clear line."""
    logs.configure(service)
    exit_with_faults(lambda: asyncio.run(serve(listener, callers, assemble)))


def exit_with_faults(body: Callable[[], None]) -> None:
    """Run ``body``; a fault that a person must mend is one line on stderr and exit status 2."""
    try:
        body()
    except (ConfigError, PortTakenError) as error:
        print(error, file=sys.stderr)
        sys.exit(2)
