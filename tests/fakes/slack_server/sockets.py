"""Socket Mode: hello, envelopes, acknowledgements, disconnects, up to ten sockets."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from itertools import count
from uuid import uuid4

from aiohttp import WSMsgType, web

from tests.fakes.slack_server.state import Json
from tests.fakes.slack_server.world import World

MOST_SOCKETS = 10
_ANSWERABLE = ("slash_commands", "interactive")


class NoSocketError(Exception):
    """No socket of the app is open."""


@dataclass
class SocketHub:
    """The open sockets; envelopes go to each in turn."""

    world: World
    sockets: list[web.WebSocketResponse] = field(default_factory=list)
    waiting: dict[str, asyncio.Future[Json]] = field(default_factory=dict)
    turn: count[int] = field(default_factory=count)

    async def serve(self, request: web.Request) -> web.StreamResponse:
        """One socket, from hello to its end; a ticket opens one."""
        ticket = request.query.get("ticket", "")
        if ticket not in self.world.socket_tickets or len(self.sockets) >= MOST_SOCKETS:
            raise web.HTTPForbidden(text="invalid ticket")
        self.world.socket_tickets.remove(ticket)
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        self.sockets.append(socket)
        await socket.send_json(self._hello())
        try:
            async for message in socket:
                if message.type == WSMsgType.TEXT:
                    self._acknowledge(message.data)
        finally:
            self.sockets.remove(socket)
        return socket

    def _hello(self) -> Json:
        information = {"app_id": self.world.app.app_id}
        debug = {"host": "fake", "build_number": 1, "approximate_connection_time": 18060}
        hello: Json = {"type": "hello", "num_connections": len(self.sockets)}
        return hello | {"debug_info": debug, "connection_info": information}

    def _acknowledge(self, text: str) -> None:
        try:
            answer = json.loads(text)
        except ValueError:
            return
        future = self.waiting.get(str(answer.get("envelope_id", "")))
        if future and not future.done():
            future.set_result(answer.get("payload") or {})

    async def ask(self, kind: str, payload: Json, retry_number: int, reason: str) -> Json:
        """Send an envelope over the next socket and wait for its acknowledgement's payload."""
        if not self.sockets:
            raise NoSocketError
        envelope_id = str(uuid4())
        envelope: Json = {"envelope_id": envelope_id, "type": kind, "payload": payload}
        envelope["accepts_response_payload"] = kind in _ANSWERABLE
        if kind == "events_api":
            envelope |= {"retry_attempt": retry_number, "retry_reason": reason}
        answered = asyncio.get_running_loop().create_future()
        self.waiting[envelope_id] = answered
        try:
            await self._send(envelope)
            payload_back: Json = await answered
        finally:
            del self.waiting[envelope_id]
        return payload_back

    async def _send(self, message: Json) -> None:
        socket = self.sockets[next(self.turn) % len(self.sockets)]
        try:
            await socket.send_json(message)
        except ConnectionError:
            raise NoSocketError from None

    async def disconnect(self, reason: str) -> None:
        """Ask every socket to leave, and close it."""
        for socket in list(self.sockets):
            await socket.send_json({"type": "disconnect", "reason": reason})
            await socket.close()

    async def close(self) -> None:
        """End every socket."""
        for socket in list(self.sockets):
            await socket.close()
