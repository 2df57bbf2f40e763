"""Socket Mode: the same deliveries over a connection that this process opens.

A connection is judged by its last ping, not by looking open. Whatever ends one, a whole new one is
made with a new address: slack-sdk on its own would ask the old address again for ever when the
first attempt at it fails.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import structlog
from slack_sdk.socket_mode.aiohttp import SocketModeClient
from slack_sdk.socket_mode.request import SocketModeRequest
from slack_sdk.socket_mode.response import SocketModeResponse
from slack_sdk.web.async_client import AsyncWebClient

from recall.ingest.v1 import slack_pb2
from services.gateway.clients import Stages
from services.gateway.config import SlackSettings
from services.gateway.slack.edge import LOOKING, NOT_INSTALLED, TRY_AGAIN
from services.gateway.slack.events import (
    Challenge,
    Delivery,
    Ignored,
    UnreadableError,
    read_envelope,
    read_interaction,
    read_slash_command,
)
from services.gateway.slack.gap import fill_the_gap
from services.gateway.slack.record import record
from services.runtime.background import running
from services.runtime.errors import CallError

# Four missed pings end a connection.
PING_SECONDS = 5.0
CHECK_SECONDS = 1.0
CONNECT_SECONDS = 20.0

log = structlog.get_logger("socket")


@asynccontextmanager
async def socket_mode(
    slack: SlackSettings, stages: Stages, ping_seconds: float = PING_SECONDS
) -> AsyncIterator[None]:
    """Receive for the length of the block."""
    async with running(_stay_connected(slack, stages, ping_seconds)):
        yield


async def _stay_connected(slack: SlackSettings, stages: Stages, ping_seconds: float) -> None:
    was_connected = False
    while True:
        client = SocketModeClient(
            slack.app_token,
            web_client=AsyncWebClient(base_url=slack.api_url, retry_handlers=[]),
            auto_reconnect_enabled=False,
            ping_interval=ping_seconds,
        )
        _listen(client, stages)
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                await client.connect()  # type: ignore[no-untyped-call]
            log.info("socket connected")
            if was_connected:
                await fill_the_gap(stages)
            was_connected = True
            await _while_connected(client, stages, min(CHECK_SECONDS, ping_seconds))
            log.warning("socket lost")
        except TimeoutError:
            log.warning("socket not connected", seconds=CONNECT_SECONDS)
        finally:
            await client.close()  # type: ignore[no-untyped-call]
        await asyncio.sleep(min(CHECK_SECONDS, ping_seconds))


async def _while_connected(client: SocketModeClient, stages: Stages, check_seconds: float) -> None:
    """Return when the connection is lost. slack-sdk replaces one that Slack asks to leave."""
    session = client.current_session
    # A missed ping tells nobody; it has to be looked for.
    while await client.is_connected():
        if client.current_session is not session:
            session = client.current_session
            await fill_the_gap(stages)
        await asyncio.sleep(check_seconds)


def _listen(client: SocketModeClient, stages: Stages) -> None:
    async def take(_: Any, request: SocketModeRequest) -> None:
        answer = await answer_of(request, stages)
        if answer is not None:
            await client.send_socket_mode_response(answer)

    client.socket_mode_request_listeners.append(take)


async def answer_of(request: SocketModeRequest, stages: Stages) -> SocketModeResponse | None:
    """The acknowledgement, once it is recorded. None: Slack shall send it again."""
    try:
        delivery = read_delivery(request.type, request.payload)
        outcome = await _recorded(delivery, stages)
    except UnreadableError as error:
        log.warning("delivery unreadable", cause=str(error))
        return SocketModeResponse(request.envelope_id)
    except CallError:
        if request.type != "slash_commands":
            return None
        return _told(request, TRY_AGAIN)
    if request.type != "slash_commands":
        return SocketModeResponse(request.envelope_id)
    ignored = outcome == slack_pb2.RECORDED_IGNORED
    return _told(request, NOT_INSTALLED if ignored else LOOKING)


def read_delivery(kind: str, payload: dict[str, Any]) -> Delivery:
    """What an envelope carries, by the same reader as over HTTP. Raises UnreadableError."""
    if kind == "events_api":
        return read_envelope(payload, json.dumps(payload, ensure_ascii=False).encode())
    if kind == "slash_commands":
        return read_slash_command({name: str(value) for name, value in payload.items()})
    return read_interaction(payload) if kind == "interactive" else Ignored(kind)


async def _recorded(delivery: Delivery, stages: Stages) -> slack_pb2.Recorded.ValueType:
    if isinstance(delivery, Ignored | Challenge):
        return slack_pb2.RECORDED_DUPLICATE
    return await record(delivery, stages)


def _told(request: SocketModeRequest, text: str) -> SocketModeResponse:
    body = {"response_type": "ephemeral", "text": text}
    return SocketModeResponse(request.envelope_id, payload=body)
