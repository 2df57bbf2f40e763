"""What people do in the meantime: write, reply, change, delete, and ask in every way.

Every version of a message holds a word of its own, so that what is gone can be looked for. Every
question is asked by somebody who asks nothing else, so that whatever this person sees answers it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from random import Random
from typing import Any

from services.gateway.slack.edge import LOOKING
from tests.fakes.slack_server.control import SlackControl
from tests.faults.stage import Stage

WRITERS = ("Ines", "Tomo", "Femi", "Bao", "Lena", "Piet")
OPEN, CLOSED = ("quay", "arrivals"), "leads"
DOCKS = 6
PAUSE_SECONDS = 0.1
# Messages of the last while are changed and deleted, so that their events overtake each other.
RECENT = 12

_QUESTIONS = (
    "ask what is the code word of dock {dock}?",
    "ask who changed the rota of pier {dock}?",
    "search code word dock {dock}",
    "decisions",
    "catch-up in:#quay",
    "help",
)


@dataclass(frozen=True)
class Asked:
    """One question. ``key`` is what its job is known by; empty until Slack tells it.

    ``accepted``: whether Slack was told that it is looked after.
    """

    person_id: str
    door: str
    key: str
    accepted: bool


@dataclass
class Load:
    """Acts at random until told to stop. ``words`` are those of each message's versions."""

    stage: Stage
    random: Random
    words: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    facts: dict[int, tuple[str, str]] = field(default_factory=dict)
    asked: list[Asked] = field(default_factory=list)
    acts: dict[str, int] = field(default_factory=dict)
    recent: list[tuple[str, str]] = field(default_factory=list)
    asking: set[asyncio.Task[None]] = field(default_factory=set)
    askers: int = 0

    @property
    def control(self) -> SlackControl:
        return self.stage.control

    async def begin(self) -> None:
        """Make the people and channels, and write what stays as it is to the end."""
        for name in WRITERS:
            self.control.add_user(name)
        for name in OPEN:
            self.control.add_channel(name, members=WRITERS)
        self.control.add_channel(CLOSED, kind="private_channel", members=WRITERS)
        for name in (*OPEN, CLOSED):
            self.control.join(name, self.stage.bot_id)
        for dock in range(DOCKS):
            word = self._word()
            text = f"The code word of dock {dock} is {word}."
            posted = self.control.post(OPEN[0], self._writer(), text)
            channel_id = self.control.find_channel(OPEN[0]).channel_id
            self.words[channel_id, posted.ts] = [word]
            self.facts[dock] = (posted.ts, word)
        await self.control.settle()

    async def go_on(self, over: asyncio.Event) -> None:
        """One act after the other until ``over``; then wait for what was asked."""
        weighted: list[tuple[Callable[[], None], int]] = [
            (self._post, 32),
            (self._reply, 16),
            (self._edit, 18),
            (self._delete, 10),
            (self._deliver_again, 6),
            (self._command, 7),
            (self._mention, 6),
            (self._direct, 5),
        ]
        acts, weights = zip(*weighted, strict=True)
        while not over.is_set():
            act = self.random.choices(acts, weights)[0]
            name = act.__name__.strip("_").replace("_", " ")
            self.acts[name] = self.acts.get(name, 0) + 1
            act()
            await asyncio.sleep(self.random.uniform(0, 2 * PAUSE_SECONDS))
        await asyncio.gather(*self.asking)

    def _post(self) -> None:
        self._write("")

    def _reply(self) -> None:
        channel_id, ts = self._chosen()
        root = self.control.find_channel(channel_id).messages[ts].thread_ts or ts
        self._write(root, channel_id)

    def _write(self, thread: str, channel: str = "") -> None:
        word = self._word()
        text = f"Pier {self.random.randrange(DOCKS)} has a new rota, see {word}."
        channel_id = self.control.find_channel(channel or self._channel()).channel_id
        posted = self.control.post(channel_id, self._writer(), text, thread=thread)
        self.words[channel_id, posted.ts] = [word]
        self.recent = [*self.recent, (channel_id, posted.ts)][-RECENT:]

    def _edit(self) -> None:
        channel_id, ts = self._chosen()
        word = self._word()
        text = f"Pier {self.random.randrange(DOCKS)} has another rota, see {word}."
        self.control.edit(channel_id, ts, text)
        self.words[channel_id, ts].append(word)

    def _delete(self) -> None:
        channel_id, ts = self._chosen()
        self.control.delete(channel_id, ts)
        self.recent.remove((channel_id, ts))

    def _deliver_again(self) -> None:
        event_ids = list(self.control.sender.deliveries)
        self.control.deliver_again(self.random.choice(event_ids[-50:]))

    def _command(self) -> None:
        question = self.random.choice(_QUESTIONS).format(dock=self.random.randrange(DOCKS))
        self._in_background(self._typed(self._asker(), question))

    async def _typed(self, person_id: str, question: str) -> None:
        answer = await self.control.command(person_id, self._channel(), question)
        accepted = answer.status == 200 and LOOKING in answer.body
        self.asked.append(Asked(person_id, "command", answer.trigger_id, accepted))

    def _mention(self) -> None:
        person_id, dock = self._asker(), self.random.randrange(DOCKS)
        text = f"<@{self.stage.bot_id}> what is the code word of dock {dock}?"
        self._question(person_id, self._channel(), text, "mention")

    def _direct(self) -> None:
        person_id, dock = self._asker(), self.random.randrange(DOCKS)
        channel_id = self.control.direct_channel(person_id).channel_id
        self._question(person_id, channel_id, f"the code word of dock {dock}?", "direct")

    def _question(self, person_id: str, channel: str, text: str, door: str) -> None:
        before = set(self.control.sender.deliveries)
        self.control.post(channel, person_id, text)
        new = [d for key, d in self.control.sender.deliveries.items() if key not in before]
        event = "app_mention" if door == "mention" else "message"
        (delivery,) = (d for d in new if d.envelope["event"]["type"] == event)
        self.asked.append(Asked(person_id, door, delivery.event_id, accepted=True))

    def _asker(self) -> str:
        """Somebody who asks nothing else, and is in every channel."""
        self.askers += 1
        person = self.control.add_user(f"Asker {self.askers}")
        for name in (*OPEN, CLOSED):
            self.control.find_channel(name).members.append(person.user_id)
        return person.user_id

    def _in_background(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self.asking.add(task)
        task.add_done_callback(self.asking.discard)

    def _chosen(self) -> tuple[str, str]:
        if not self.recent:
            self._post()
        return self.random.choice(self.recent)

    def _channel(self) -> str:
        return self.random.choice((*OPEN, CLOSED))

    def _writer(self) -> str:
        return self.random.choice(WRITERS)

    def _word(self) -> str:
        return f"w{self.random.getrandbits(48):012x}"
