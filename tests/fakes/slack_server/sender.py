"""Brings events to the app as Slack does: three seconds to answer, three retries."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

import aiohttp

from tests.fakes.slack_server.delivery_settings import (
    RETRY_DELAYS_SECONDS,
    Addresses,
    DeliverySettings,
    Signer,
)
from tests.fakes.slack_server.records import Delivery
from tests.fakes.slack_server.sockets import NoSocketError, SocketHub
from tests.fakes.slack_server.state import Json

MOST_REDIRECTS = 2
USER_AGENT = "Slackbot 1.0 (+https://api.slack.com/robots)"


@dataclass(frozen=True)
class Attempt:
    """The app's answer; ``reason`` is Slack's word for a failure, "" for success."""

    status: int
    body: str
    reason: str
    no_retry: bool = False


@dataclass
class EventSender:
    """The outbox of a running Slack; ``settings`` and ``addresses`` are the world's own."""

    signer: Signer
    settings: DeliverySettings
    addresses: Addresses
    sockets: SocketHub
    now: Callable[[], float]
    session: aiohttp.ClientSession
    deliveries: dict[str, Delivery] = field(default_factory=dict)
    held: list[Delivery] = field(default_factory=list)
    holding: bool = False
    tasks: set[asyncio.Task[None]] = field(default_factory=set)

    def send(self, envelope: Json) -> None:
        """Deliver in the background, or keep it while events are held."""
        delivery = Delivery(envelope["event_id"], envelope)
        self.deliveries[delivery.event_id] = delivery
        if self.holding:
            delivery.state = "held"
            self.held.append(delivery)
        else:
            self._launch(delivery)

    def release(self, order: Sequence[int] | None = None) -> None:
        """Stop holding and deliver what was held one after the other, in an order."""
        self.holding = False
        waiting, self.held = self.held, []
        positions = range(len(waiting)) if order is None else order
        self._start(self._one_by_one([waiting[position] for position in positions]))

    def again(self, event_id: str, retry_number: int) -> None:
        """One more single delivery of an event, as a retry (0: as if it were the first)."""
        self._start(self._repeat(self.deliveries[event_id], retry_number))

    async def settle(self) -> None:
        """Wait until no delivery is under way."""
        while self.tasks:
            await asyncio.gather(*self.tasks)

    async def close(self) -> None:
        """Give up what is under way."""
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)

    async def ask(self, url: str, kind: str, fields: dict[str, str], payload: Json) -> Attempt:
        """Send a command or interaction, once: a signed form, or a Socket Mode envelope."""
        if self.addresses.transport == "socket":
            return await self._by_socket(kind, payload, 0, "")
        body = urlencode(fields).encode()
        return await self._by_http(url, body, "application/x-www-form-urlencoded", {})

    async def ask_json(self, url: str, payload: Json) -> Attempt:
        """Send one signed JSON body to a URL, without retries."""
        return await self._by_http(url, json.dumps(payload).encode(), "application/json", {})

    def _launch(self, delivery: Delivery) -> None:
        delivery.state = "sending"
        for _ in range(self.settings.copies):
            self._start(self._deliver(delivery))

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def _one_by_one(self, deliveries: list[Delivery]) -> None:
        for delivery in deliveries:
            delivery.state = "sending"
            for _ in range(self.settings.copies):
                await self._deliver(delivery)

    async def _repeat(self, delivery: Delivery, retry_number: int) -> None:
        reason = "http_timeout" if retry_number else ""
        attempt = await self._attempt(delivery, retry_number, reason)
        delivery.attempts.append(attempt.status)

    async def _deliver(self, delivery: Delivery) -> None:
        attempt = await self._attempt(delivery, 0, "")
        delivery.attempts.append(attempt.status)
        for number, delay_seconds in enumerate(RETRY_DELAYS_SECONDS, start=1):
            if not attempt.reason or attempt.no_retry:
                break
            await asyncio.sleep(delay_seconds * self.settings.time_scale)
            attempt = await self._attempt(delivery, number, attempt.reason)
            delivery.attempts.append(attempt.status)
        delivery.state = "given up" if attempt.reason else "acknowledged"

    async def _attempt(self, delivery: Delivery, number: int, reason: str) -> Attempt:
        if self.addresses.transport == "socket":
            return await self._by_socket("events_api", delivery.envelope, number, reason)
        retry = {"X-Slack-Retry-Num": str(number), "X-Slack-Retry-Reason": reason}
        body = json.dumps(delivery.envelope, ensure_ascii=False).encode()
        url = self.addresses.events_url
        return await self._by_http(url, body, "application/json", retry if number else {})

    async def _by_socket(self, kind: str, payload: Json, number: int, reason: str) -> Attempt:
        try:
            async with asyncio.timeout(self.settings.timeout_seconds):
                answer = await self.sockets.ask(kind, payload, number, reason)
        except NoSocketError:
            return Attempt(0, "", "connection_failed")
        except TimeoutError:
            return Attempt(0, "", "http_timeout")
        return Attempt(200, json.dumps(answer) if answer else "", "")

    async def _by_http(
        self, url: str, body: bytes, content_type: str, extra: dict[str, str]
    ) -> Attempt:
        headers = {"Content-Type": content_type, "User-Agent": USER_AGENT}
        headers |= self.signer.headers(body, self.now(), self.settings) | extra
        timeout = aiohttp.ClientTimeout(total=self.settings.timeout_seconds)
        try:
            async with self.session.post(
                url, data=body, headers=headers, timeout=timeout, max_redirects=MOST_REDIRECTS + 1
            ) as response:
                text = await response.text()
        except aiohttp.TooManyRedirects:
            return Attempt(0, "", "too_many_redirects")
        except TimeoutError:
            return Attempt(0, "", "http_timeout")
        except (aiohttp.ClientError, ValueError):
            return Attempt(0, "", "connection_failed")
        reason = "" if 200 <= response.status < 300 else "http_error"
        no_retry = response.headers.get("X-Slack-No-Retry") == "1"
        return Attempt(response.status, text, reason, no_retry)
