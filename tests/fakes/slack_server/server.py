"""The running server: Web API, response URLs, Socket Mode, OAuth page and control, on one port."""

from __future__ import annotations

import asyncio
import base64
import json
import socket
import struct
import time
from collections.abc import Callable
from random import Random
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlencode

import aiohttp
from aiohttp import web

from tests.fakes.slack_server.control import SlackControl
from tests.fakes.slack_server.control_http import list_operations, run_operation
from tests.fakes.slack_server.delivery_settings import Signer
from tests.fakes.slack_server.faults import Fault
from tests.fakes.slack_server.response_urls import respond
from tests.fakes.slack_server.sender import EventSender
from tests.fakes.slack_server.sockets import SocketHub
from tests.fakes.slack_server.state import Json, SlackError
from tests.fakes.slack_server.web_api import Reply, answer
from tests.fakes.slack_server.world import AppIdentity, World

_HTML = "<!DOCTYPE html><html><body><h1>{status} Service Unavailable</h1></body></html>"


class _Unsent:
    """Takes no envelope: nothing can be sent before the server runs."""

    def send(self, envelope: Json) -> None:
        raise RuntimeError("The server is not running; use it as an async context manager.")


class SlackServer:
    """Use as an async context manager, then through ``control``.

    ``clock`` gives epoch seconds, ``random`` makes tokens and ids of events; both are given so
    that a test can step one and fix the other. Port 0 takes a free one.
    """

    def __init__(
        self,
        *,
        app_url: str = "",
        port: int = 0,
        app: AppIdentity | None = None,
        clock: Callable[[], float] = time.time,
        random: Random | None = None,
    ) -> None:
        identity = app or AppIdentity()
        self.world = World(identity, clock, random or Random(), _Unsent())
        self._app_url, self._port = app_url, port
        self._sockets = SocketHub(self.world)

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession()
        world = self.world
        self._sender = EventSender(
            Signer(world.app.signing_secret),
            world.delivery,
            world.addresses,
            self._sockets,
            # Not world.now: advance_clock must not spoil the signatures' times.
            world.clock,
            self._session,
        )
        world.outbox = self._sender
        self.control = SlackControl(world, self._sender, self._sockets)
        self.control.connect(app_url=self._app_url)
        self._runner = web.AppRunner(self._application(), shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self._port)
        await site.start()
        world.origin = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._sender.close()
        await self._sockets.close()
        await self._session.close()
        await self._runner.cleanup()

    @property
    def base_url(self) -> str:
        """The server's address."""
        return self.world.origin

    @property
    def api_url(self) -> str:
        """``base_url`` of slack-sdk's clients."""
        return f"{self.world.origin}/api/"

    @property
    def authorize_url(self) -> str:
        """The page that stands for ``https://slack.com/oauth/v2/authorize``."""
        return f"{self.world.origin}/oauth/v2/authorize"

    @property
    def app(self) -> AppIdentity:
        """What the app is to be configured with."""
        return self.world.app

    def _application(self) -> web.Application:
        application = web.Application(client_max_size=2**24)
        application.add_routes(
            [
                web.route("*", "/api/{method}", self._web_api),
                web.post("/response/{key:.+}", self._response_url),
                web.get("/link/", self._sockets.serve),
                web.get("/oauth/v2/authorize", self._authorize),
                web.get("/control", list_operations),
                web.post("/control/{operation}", self._run_operation),
            ]
        )
        return application

    async def _run_operation(self, request: web.Request) -> web.Response:
        return await run_operation(self.control, request)

    async def _web_api(self, request: web.Request) -> web.Response:
        try:
            arguments = dict(request.query) | await _body(request)
        except SlackError as error:
            return web.json_response({"ok": False, "error": error.code})
        scheme, _, bearer = request.headers.get("Authorization", "").partition(" ")
        token = bearer if scheme == "Bearer" else str(arguments.get("token", ""))
        if scheme == "Basic":
            login, _, password = base64.b64decode(bearer).decode().partition(":")
            arguments |= {"client_id": login, "client_secret": password}
        reply = answer(self.world, request.match_info["method"], arguments, token)
        if reply.fault:
            return await _perform(reply.fault, reply, request)
        return web.json_response(reply.body, status=reply.status, headers=reply.headers)

    async def _response_url(self, request: web.Request) -> web.Response:
        try:
            respond(self.world, request.match_info["key"], await _body(request))
        except SlackError as error:
            return web.json_response({"ok": False, "error": error.code}, status=404)
        return web.Response(text="ok")

    async def _authorize(self, request: web.Request) -> web.Response:
        """Stands for a person who allows everything (or, with ``deny=1``, nothing).

        ``team`` and ``user`` choose who, ``rotating`` and ``enterprise`` what they give.
        """
        asked = request.query
        redirect_uri = asked.get("redirect_uri", "")
        if asked.get("client_id") != self.world.app.client_id or not redirect_uri:
            return web.Response(status=400, text="Invalid client_id or redirect_uri parameter")
        given = {"state": asked.get("state", "")}
        if asked.get("deny"):
            given |= {"error": "access_denied"}
        else:
            given["code"] = self.control.authorize(
                team=asked.get("team", ""),
                user=asked.get("user", ""),
                rotating=bool(asked.get("rotating")),
                enterprise=bool(asked.get("enterprise")),
                scopes=asked.get("scope", "").split(","),
                redirect_uri=redirect_uri,
            )
        separator = "&" if "?" in redirect_uri else "?"
        raise web.HTTPFound(f"{redirect_uri}{separator}{urlencode(given)}")


async def _body(request: web.Request) -> Json:
    if request.content_type == "application/json":
        try:
            parsed: Any = json.loads(await request.read() or b"{}")
        except ValueError:
            raise SlackError("invalid_json") from None
        if not isinstance(parsed, dict):
            raise SlackError("json_not_object")
        return parsed
    return {name: str(value) for name, value in (await request.post()).items()}


async def _perform(fault: Fault, reply: Reply, request: web.Request) -> web.Response:
    """Answer as a fault wants it."""
    if fault.kind == "slow":
        await asyncio.sleep(fault.seconds)
        return web.json_response(reply.body, status=reply.status, headers=reply.headers)
    if fault.kind == "malformed":
        return web.Response(text='{"ok": true, "messages": [{"ty', content_type="application/json")
    if fault.kind in ("reset", "reply_lost"):
        _reset(request)
    page = _HTML.format(status=reply.status)
    return web.Response(status=reply.status, text=page, content_type="text/html")


def _reset(request: web.Request) -> None:
    if request.transport is None:
        return
    connection = request.transport.get_extra_info("socket")
    # No time to linger: closing sends RST instead of FIN.
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    request.transport.abort()
