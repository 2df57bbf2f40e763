"""Channels to other stages: made lazily in each process, passing id, deadline and token on."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import grpc

from services.runtime import call as calls
from services.runtime.interceptors import AUTHORIZATION, REQUEST_ID

# Both sides of every connection use these, so that no ping is ever one too many
# (GOAWAY too_many_pings): the client pings every 30 s, the server allows one every 10 s.
KEEPALIVE_MILLISECONDS = 30_000
KEEPALIVE_TIMEOUT_MILLISECONDS = 10_000
MAX_CONNECTION_AGE_MILLISECONDS = 300_000
MAX_MESSAGE_BYTES = 64 * 1024 * 1024
DEFAULT_TIMEOUT_SECONDS = 30.0

Options = tuple[tuple[str, int | str], ...]


def channel_options(keepalive_milliseconds: int = KEEPALIVE_MILLISECONDS) -> Options:
    """Options of every client channel; ``server_options`` is the other side."""
    return (
        ("grpc.keepalive_time_ms", keepalive_milliseconds),
        ("grpc.keepalive_timeout_ms", KEEPALIVE_TIMEOUT_MILLISECONDS),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.max_pings_without_data", 0),
        ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
        ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
        ("grpc.lb_policy_name", "round_robin"),
        # DNS is looked up again when a connection ends; the server ends each one regularly.
        ("grpc.dns_min_time_between_resolutions_ms", 5_000),
        ("grpc.initial_reconnect_backoff_ms", 100),
        ("grpc.max_reconnect_backoff_ms", 2_000),
        # Channels of one process that share a target must not share a dead connection's back-off.
        ("grpc.use_local_subchannel_pool", 1),
    )


def server_options(
    keepalive_milliseconds: int = KEEPALIVE_MILLISECONDS,
    max_connection_age_milliseconds: int = MAX_CONNECTION_AGE_MILLISECONDS,
) -> Options:
    """Options of every server, in agreement with ``channel_options``."""
    # A third of the client's interval: its pings are never one too many.
    smallest_interval = keepalive_milliseconds // 3
    return (
        ("grpc.keepalive_time_ms", keepalive_milliseconds),
        ("grpc.keepalive_timeout_ms", KEEPALIVE_TIMEOUT_MILLISECONDS),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.min_ping_interval_without_data_ms", smallest_interval),
        ("grpc.http2.min_recv_ping_interval_without_data_ms", smallest_interval),
        ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
        ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
        # Connections end regularly so that clients look replicas up again; calls in progress on
        # them run to their end (the grace is unlimited).
        ("grpc.max_connection_age_ms", max_connection_age_milliseconds),
        ("grpc.so_reuseport", 0),
    )


class Peer:
    """One stage to call. The channel is made at first use in each process, never before a fork.

    ``token`` is asked for at every call, so that a replaced token is used at once.
    """

    def __init__(self, target: str, token: Callable[[], str]) -> None:
        self.target = target
        self._token = token
        self._channels: dict[int, grpc.aio.Channel] = {}

    def channel(self) -> grpc.aio.Channel:
        """The channel of this process. Call it inside a running event loop."""
        process = os.getpid()
        if process not in self._channels:
            self._channels[process] = grpc.aio.insecure_channel(
                self.target, options=channel_options(), interceptors=_interceptors(self._token)
            )
        return self._channels[process]

    async def close(self) -> None:
        """Close this process's channel."""
        channel = self._channels.pop(os.getpid(), None)
        if channel is not None:
            await channel.close()


def _outgoing(
    details: grpc.aio.ClientCallDetails, token: Callable[[], str], limited: bool
) -> grpc.aio.ClientCallDetails:
    """The call's details with the deadline cut by the hop's margin, the id and the token."""
    timeout = details.timeout
    if limited or calls.current.get() is not None:
        timeout = calls.remaining_seconds(timeout or DEFAULT_TIMEOUT_SECONDS)
    metadata = grpc.aio.Metadata(*(details.metadata or ()))
    metadata[AUTHORIZATION] = f"Bearer {token()}"
    if calls.request_id():
        metadata[REQUEST_ID] = calls.request_id()
    return grpc.aio.ClientCallDetails(
        details.method, timeout, metadata, details.credentials, details.wait_for_ready
    )


class _Outgoing:
    def __init__(self, token: Callable[[], str]) -> None:
        self._token = token

    async def _go(self, continuation: Any, details: Any, request: Any, *, limited: bool) -> Any:
        return await continuation(_outgoing(details, self._token, limited), request)


class _UnaryUnary(_Outgoing, grpc.aio.UnaryUnaryClientInterceptor):
    async def intercept_unary_unary(
        self, continuation: Any, client_call_details: Any, request: Any
    ) -> Any:
        return await self._go(continuation, client_call_details, request, limited=True)


class _UnaryStream(_Outgoing, grpc.aio.UnaryStreamClientInterceptor):
    async def intercept_unary_stream(
        self, continuation: Any, client_call_details: Any, request: Any
    ) -> Any:
        return await self._go(continuation, client_call_details, request, limited=True)


class _StreamUnary(_Outgoing, grpc.aio.StreamUnaryClientInterceptor):
    async def intercept_stream_unary(
        self, continuation: Any, client_call_details: Any, request_iterator: Any
    ) -> Any:
        return await self._go(continuation, client_call_details, request_iterator, limited=False)


class _StreamStream(_Outgoing, grpc.aio.StreamStreamClientInterceptor):
    async def intercept_stream_stream(
        self, continuation: Any, client_call_details: Any, request_iterator: Any
    ) -> Any:
        return await self._go(continuation, client_call_details, request_iterator, limited=False)


def _interceptors(token: Callable[[], str]) -> list[grpc.aio.ClientInterceptor]:
    kinds = (_UnaryUnary, _UnaryStream, _StreamUnary, _StreamStream)
    return [kind(token) for kind in kinds]
