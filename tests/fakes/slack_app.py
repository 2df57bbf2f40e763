"""An app of no product: it takes what Slack sends, checks the signature, answers as scripted."""

from __future__ import annotations

import asyncio
import json
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qsl

from aiohttp import web
from slack_sdk.signature import Clock, SignatureVerifier


@dataclass(frozen=True)
class Received:
    """One request as it arrived; header names in lower case."""

    path: str
    headers: dict[str, str]
    raw: bytes
    valid: bool

    @property
    def json(self) -> Any:
        """The body of an event."""
        return json.loads(self.raw)

    @property
    def form(self) -> dict[str, str]:
        """The fields of a command or interaction."""
        return dict(parse_qsl(self.raw.decode(), keep_blank_values=True))

    @property
    def event(self) -> Any:
        """The inner event."""
        return self.json["event"]


@dataclass(frozen=True)
class AppAnswer:
    """What the app answers next; with ``hold`` it never does."""

    status: int = 200
    body: str = ""
    hold: bool = False
    headers: dict[str, str] = field(default_factory=dict)


class _AppClock(Clock):
    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now

    def now(self) -> float:
        return self._now()


class SlackApp:
    """An async context manager; answers wait in ``answers`` and are taken in order, then 200."""

    def __init__(self, signing_secret: str, now: Callable[[], float] = time.time) -> None:
        self.received: list[Received] = []
        self.answers: deque[AppAnswer] = deque()
        self._closing = asyncio.Event()
        self._verifier = SignatureVerifier(signing_secret, clock=_AppClock(now))

    async def __aenter__(self) -> Self:
        application = web.Application()
        application.router.add_post("/{path:.*}", self._take)
        self._runner = web.AppRunner(application, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._closing.set()
        await self._runner.cleanup()

    @property
    def url(self) -> str:
        """The app's address, for ``SlackServer(app_url=…)``."""
        return f"http://127.0.0.1:{self._runner.addresses[0][1]}"

    @property
    def events(self) -> list[Any]:
        """The inner events received, in order."""
        return [one.event for one in self.received if one.path == "/slack/events"]

    def of_type(self, kind: str) -> list[Any]:
        """The inner events of a type or subtype."""
        return [event for event in self.events if kind in (event["type"], event.get("subtype"))]

    async def _take(self, request: web.Request) -> web.Response:
        raw = await request.read()
        headers = {name.lower(): value for name, value in request.headers.items()}
        valid = self._verifier.is_valid_request(raw, headers)
        self.received.append(Received(request.path, headers, raw, valid))
        answer = self.answers.popleft() if self.answers else AppAnswer()
        if answer.hold:
            await self._closing.wait()
        return web.Response(status=answer.status, text=answer.body, headers=answer.headers)
