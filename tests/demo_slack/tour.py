"""Each step of the tour: somebody writes, changes or deletes, somebody asks, both are shown."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.demo_slack.running import DemoSlack
from tests.fakes.slack_server.state import Message

QUESTION = "which code opens the zeppelin mooring gate?"
FIRST = "The code that opens the zeppelin mooring gate is KESTREL-42."
SECOND = "The code that opens the zeppelin mooring gate is HERON-77."
# From Slack's event to an answer that rests on it.
MOST_SECONDS = 2.0
WAIT_SECONDS = 60.0
LOOKING = "Looking…"

Say = Callable[[str], None]


class TourError(Exception):
    """A step did not show what it is there to show."""


@dataclass
class Tour:
    """One channel, somebody who writes and somebody who asks."""

    demo: DemoSlack
    say: Say
    channel: str
    author: str
    asker: str
    most_seconds: float = MOST_SECONDS

    async def take(self) -> None:
        """All steps. Raises TourError."""
        posted = await self._said()
        await self._edited(posted)
        await self._deleted(posted)

    async def _said(self) -> Message:
        self.say(f"\n1. {self.author} writes in #{self.channel}: {FIRST}")
        began = time.monotonic()
        posted = self.demo.control.post(self.channel, self.author, FIRST)
        answer = await self.asked("KESTREL-42")
        self._in_time(began, answer)
        return posted

    async def _edited(self, posted: Message) -> None:
        self.say(f"\n2. {self.author} edits it: {SECOND}")
        began = time.monotonic()
        self.demo.control.edit(self.channel, posted.ts, SECOND)
        answer = await self.asked("HERON-77")
        self._in_time(began, answer)
        self._without(answer, "KESTREL-42")

    async def _deleted(self, posted: Message) -> None:
        self.say(f"\n3. {self.author} deletes it.")
        self.demo.control.delete(self.channel, posted.ts)
        answer = await self.asked("")
        for word in ("KESTREL-42", "HERON-77"):
            self._without(answer, word)
        self.say("   the same question finds no evidence any more")

    async def asked(self, expected: str) -> str:
        """Ask once the event is acknowledged; what the asker then sees."""
        control = self.demo.control
        await control.settle()
        seen = {message["ts"] for message in control.visible(self.asker, self.channel)}
        self.say(f"   {self.asker} types: /recall ask {QUESTION}")
        await control.command(self.asker, self.channel, f"ask {QUESTION}")
        answer = await self._answer(seen)
        for line in answer.splitlines():
            self.say(f"   | {line}")
        if expected not in answer:
            raise TourError(f"The answer does not hold {expected}.")
        return answer

    async def _answer(self, seen: set[str]) -> str:
        deadline = time.monotonic() + WAIT_SECONDS
        while time.monotonic() < deadline:
            for message in self.demo.control.visible(self.asker, self.channel):
                new = message.get("is_ephemeral") and message["ts"] not in seen
                if new and message["text"] != LOOKING:
                    return shown(message)
            await asyncio.sleep(0.02)
        raise TourError(f"No answer came within {WAIT_SECONDS:.0f} s.")

    def _in_time(self, began: float, answer: str) -> None:
        seconds = time.monotonic() - began
        self.say(f"   answered {seconds:.2f} s after it was written")
        if seconds > self.most_seconds:
            raise TourError(f"That is longer than {self.most_seconds:.0f} s.")

    def _without(self, answer: str, word: str) -> None:
        if word in answer:
            raise TourError(f"The answer still holds {word}.")


def shown(message: dict[str, Any]) -> str:
    """The text of a message's sections."""
    blocks = message.get("blocks") or []
    return "\n".join(b["text"]["text"] for b in blocks if b["type"] == "section")


async def warm_up(tour: Tour) -> None:
    """Ask once, so that the first step does not measure how long a model takes to load."""
    await tour.asked("")
