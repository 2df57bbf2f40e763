"""Signed message events at a steady rate, as Slack sends them, and what their senders saw.

Each is sent at its own time, however slowly others are acknowledged. What is not acknowledged in
three seconds is sent again; some events are sent twice at once.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import aiohttp

from tests.fakes.slack_server.delivery_settings import DeliverySettings, Signer

TIMEOUT_SECONDS = 3.0
# Slack waits longer before its second and third retry: a minute, and five.
RETRY_DELAYS_SECONDS = (0.0, 1.0, 5.0)
# One of so many is delivered twice at once, one of so many is a reply.
TWICE_EVERY, REPLY_EVERY = 20, 4

_SETTINGS = DeliverySettings()
_WORDS = ("berth", "pilot", "tide", "crane", "rota", "invoice", "deploy", "rollback", "radar")


@dataclass(frozen=True)
class Workplace:
    """Where the events happen."""

    team_id: str
    channel_ids: Sequence[str]
    person_ids: Sequence[str]


@dataclass(frozen=True)
class Event:
    """One new message. ``thread_ts`` is empty outside a thread."""

    event_id: str
    channel_id: str
    ts: str
    text: str
    person_id: str
    thread_ts: str

    def body(self, team_id: str) -> bytes:
        """The envelope as Slack sends it."""
        message = {
            "type": "message",
            "channel": self.channel_id,
            "channel_type": "channel",
            "user": self.person_id,
            "text": self.text,
            "ts": self.ts,
            "event_ts": self.ts,
            "team": team_id,
        }
        message |= {"thread_ts": self.thread_ts} if self.thread_ts else {}
        envelope = {
            "type": "event_callback",
            "team_id": team_id,
            "context_team_id": team_id,
            "event_id": self.event_id,
            "event_time": int(float(self.ts)),
            "event": message,
        }
        return json.dumps(envelope).encode()


def events(workplace: Workplace, count: int, first_second: int) -> list[Event]:
    """New messages in turn over the channels; a reply follows the last root of its channel."""
    made: list[Event] = []
    roots: dict[str, str] = {}
    for number in range(count):
        channel_id = workplace.channel_ids[number % len(workplace.channel_ids)]
        ts = f"{first_second + number // 100}.{number:06d}"
        is_reply = number % REPLY_EVERY == 0 and channel_id in roots
        thread_ts = roots[channel_id] if is_reply else ""
        if not is_reply:
            roots[channel_id] = ts
        person_id = workplace.person_ids[number % len(workplace.person_ids)]
        words = (_WORDS[(number * step) % len(_WORDS)] for step in (1, 2, 4, 5))
        text = f"Note {number}: {' '.join(words)}"
        made.append(Event(f"EvLOAD{number:08d}", channel_id, ts, text, person_id, thread_ts))
    return made


@dataclass
class Seen:
    """What the senders saw. ``milliseconds``: of each attempt, whatever its end."""

    milliseconds: list[float] = field(default_factory=list)
    late_milliseconds: list[float] = field(default_factory=list)
    refused: dict[str, int] = field(default_factory=dict)
    acknowledged: set[str] = field(default_factory=set)
    deliveries: int = 0
    seconds: float = 0.0


@dataclass(frozen=True)
class Sender:
    """Sends to one address with Slack's signature."""

    url: str
    signer: Signer
    team_id: str

    async def send(self, load: Sequence[Event], per_second: float) -> Seen:
        """Send each event at its time, and wait for every end."""
        seen = Seen()
        connector = aiohttp.TCPConnector(limit=0)
        timeout = aiohttp.ClientTimeout(total=TIMEOUT_SECONDS)
        async with aiohttp.ClientSession(connector=connector, timeout=timeout) as session:
            begin = time.monotonic()
            under_way = []
            for number, event in enumerate(load):
                due = begin + number / per_second
                await asyncio.sleep(max(0.0, due - time.monotonic()))
                seen.late_milliseconds.append((time.monotonic() - due) * 1000)
                for _ in range(2 if number % TWICE_EVERY == 0 else 1):
                    sending = self._deliver(session, event, seen)
                    under_way.append(asyncio.create_task(sending))
            seen.seconds = time.monotonic() - begin
            await asyncio.gather(*under_way)
        return seen

    async def _deliver(self, session: aiohttp.ClientSession, event: Event, seen: Seen) -> None:
        seen.deliveries += 1
        body = event.body(self.team_id)
        for delay_seconds in (None, *RETRY_DELAYS_SECONDS):
            if delay_seconds is not None:
                await asyncio.sleep(delay_seconds)
            begin = time.monotonic()
            failure = await self._attempt(session, body)
            seen.milliseconds.append((time.monotonic() - begin) * 1000)
            if not failure:
                seen.acknowledged.add(event.event_id)
                return
            seen.refused[failure] = seen.refused.get(failure, 0) + 1

    async def _attempt(self, session: aiohttp.ClientSession, body: bytes) -> str:
        """Empty when acknowledged, else what came instead."""
        headers = {"Content-Type": "application/json"}
        headers |= self.signer.headers(body, time.time(), _SETTINGS)
        try:
            async with session.post(self.url, data=body, headers=headers) as response:
                await response.read()
        except TimeoutError:
            return "no answer in 3 s"
        except aiohttp.ClientError as error:
            return type(error).__name__
        return "" if 200 <= response.status < 300 else f"status {response.status}"
