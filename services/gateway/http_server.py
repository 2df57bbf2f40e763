"""Serving the page with uvicorn inside a process that has its own signals and its own drain."""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from services.runtime.server import Listener, PortTakenError

MOST_CONNECTIONS = 256
HEADER_BYTES = 16 * 1024
KEEP_ALIVE_SECONDS = 5
DRAIN_SECONDS = 10


class BoundedProtocol(H11Protocol):
    """HTTP/1.1 that ends connections which hold on without asking or without reading."""

    # From connecting, or from the last reply, to a request's last header.
    header_seconds = 10.0
    # A client that reads nothing keeps a reply in memory for this long.
    unread_seconds = 30.0

    _header_timer: asyncio.TimerHandle | None = None
    _unread_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Start the clock on the first request's headers."""
        super().connection_made(transport)
        if len(self.connections) > MOST_CONNECTIONS:
            transport.abort()
        self._await_request()

    def on_response_complete(self) -> None:
        """Start the clock on the next request's headers."""
        super().on_response_complete()
        self._await_request()

    def pause_writing(self) -> None:
        """Start the clock on the client's reading."""
        super().pause_writing()
        self._unread_timer = self.loop.call_later(self.unread_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        """The client reads again."""
        super().resume_writing()
        self._stop(self._unread_timer)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the clocks."""
        self._stop(self._header_timer)
        self._stop(self._unread_timer)
        super().connection_lost(exc)

    def _await_request(self) -> None:
        self._stop(self._header_timer)
        self._header_timer = self.loop.call_later(self.header_seconds, self._end_if_idle)

    def _end_if_idle(self) -> None:
        if self.cycle is None or self.cycle.response_complete:
            self.transport.abort()

    @staticmethod
    def _stop(timer: asyncio.TimerHandle | None) -> None:
        if timer is not None:
            timer.cancel()


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.listening = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.listening.set()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to the process."""
        yield


@asynccontextmanager
async def serving_http(
    app: ASGIApp,
    listener: Listener,
    trusted_proxies: tuple[str, ...] = (),
    protocol: type[BoundedProtocol] = BoundedProtocol,
) -> AsyncIterator[int]:
    """The app for the length of the block; yields its port. Raises PortTakenError."""
    bound = bind(listener)
    config = uvicorn.Config(
        app,
        http=protocol,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=bool(trusted_proxies),
        forwarded_allow_ips=list(trusted_proxies),
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=DRAIN_SECONDS,
        h11_max_incomplete_event_size=HEADER_BYTES,
    )
    server = _Server(config)
    serving = asyncio.create_task(server.serve(sockets=[bound]))
    try:
        await server.listening.wait()
        yield bound.getsockname()[1]
    finally:
        server.should_exit = True
        await serving


def bind(listener: Listener) -> socket.socket:
    """A listening socket. Raises PortTakenError."""
    family = socket.AF_INET6 if ":" in listener.host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((listener.host, listener.port))
    except OSError as error:
        bound.close()
        if error.errno != errno.EADDRINUSE:
            raise PortTakenError(
                f"The page can not be served on {listener.host}:{listener.port} "
                f"({error.strerror}). Set RECALL_GATEWAY_HTTP_HOST or PORT_BASE."
            ) from None
        raise PortTakenError(
            f"Port {listener.port} is taken. Stop what uses it or set another PORT_BASE."
        ) from None
    return bound
