"""People who write, change, delete and search while something else happens, and what they saw."""

from __future__ import annotations

import asyncio
import itertools
from dataclasses import dataclass, field
from random import Random

import grpc

from recall.gateway.v1 import gateway_pb2
from services.cli.connection import Stack as Stubs
from services.corpus import slack_message_id
from services.runtime.errors import from_rpc_error
from tests.fakes.slack_server.control import SlackControl

WRITER, CHANNEL = "Ines", "quay"
DOCKS = 6
# One message is written, one of two changed, one of three deleted in this time.
PAUSE_SECONDS = 0.3
CALL_SECONDS = 60.0


@dataclass
class Traffic:
    """``problems`` must stay empty: a failed call, a fact not found, a deleted message shown."""

    control: SlackControl
    stubs: Stubs
    team_id: str
    random: Random
    facts: dict[int, tuple[str, str]] = field(default_factory=dict)
    deleted: set[str] = field(default_factory=set)
    generations: list[str] = field(default_factory=list)
    asked: int = 0
    problems: list[str] = field(default_factory=list)

    async def begin(self) -> None:
        """Write what stays to the end."""
        for dock in range(DOCKS):
            word = f"fact{self.random.getrandbits(40):010x}"
            posted = self.control.post(CHANNEL, WRITER, f"The code word of dock {dock} is {word}.")
            self.facts[dock] = (posted.ts, word)
        await self.control.settle()

    async def write(self, over: asyncio.Event) -> None:
        """Messages come, change and go until ``over``."""
        recent: list[str] = []
        for number in itertools.count():
            if over.is_set():
                return
            text = f"Pier {number} has a rota, see w{self.random.getrandbits(40):010x}."
            recent.append(self.control.post(CHANNEL, WRITER, text).ts)
            if number % 2:
                self.control.edit(CHANNEL, self.random.choice(recent), f"Changed: {text}")
            if number % 3 == 2:
                await self._delete(recent.pop(self.random.randrange(len(recent))))
            await asyncio.sleep(PAUSE_SECONDS)

    async def _delete(self, ts: str) -> None:
        self.control.delete(CHANNEL, ts)
        # Slack was told by then that it is recorded: from here on nobody is shown it.
        await self.control.settle()
        self.deleted.add(self.message_id(ts))

    async def ask(self, over: asyncio.Event) -> None:
        """One search, and every fifth time a whole question, after the other until ``over``."""
        while not over.is_set():
            gone, self.asked = set(self.deleted), self.asked + 1
            try:
                await (self._ask() if self.asked % 5 == 0 else self._search(gone))
            except grpc.aio.AioRpcError as raised:
                error = from_rpc_error(raised)
                self.problems.append(f"{error.reason_name}: {error.message}")

    async def _search(self, gone: set[str]) -> None:
        ts, word = self.facts[self.random.randrange(DOCKS)]
        request = gateway_pb2.SearchRequest(
            reader=self._reader(), question=f"rota of the pier, code word {word}", limit=50
        )
        found = (await self.stubs.gateway.Search(request, timeout=CALL_SECONDS)).result
        shown = {hit.message.message_id for hit in found.hits}
        self.generations.append(found.pin.generation_id)
        if self.message_id(ts) not in shown:
            self.problems.append(f"{word} was not found: {found.reason}")
        self.problems += [f"{each} was deleted and is shown" for each in shown & gone]
        origins = {hit.provenance.generation_id for hit in found.hits}
        if origins != {found.pin.generation_id}:
            self.problems.append(f"pinned to {found.pin.generation_id}, hits of {origins}")

    async def _ask(self) -> None:
        _, word = self.facts[self.random.randrange(DOCKS)]
        request = gateway_pb2.AskRequest(reader=self._reader(), question=f"Which dock has {word}?")
        events = [event async for event in self.stubs.gateway.Ask(request, timeout=CALL_SECONDS)]
        if not events or not events[-1].HasField("answer"):
            self.problems.append(f"the question about {word} ended without an answer")

    def message_id(self, ts: str) -> str:
        """Id of a message of the channel."""
        channel_id = self.control.find_channel(CHANNEL).channel_id
        return slack_message_id(self.team_id, channel_id, ts)

    def _reader(self) -> gateway_pb2.Reader:
        channel_id = self.control.find_channel(CHANNEL).channel_id
        return gateway_pb2.Reader(workspace_id=self.team_id, channel_ids=[channel_id])
