"""Searches all the while: what stands is found or an error says why not, what is deleted is not."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from random import Random

import grpc

from recall.gateway.v1 import gateway_pb2
from services.cli.connection import Stack as Stubs
from services.cli.connection import connect
from services.corpus import slack_message_id
from services.ingest.slack_event import channel_id_of, deleted_ts_of
from services.runtime.errors import from_rpc_error
from tests.faults.load import DOCKS, OPEN, Load
from tests.faults.stage import Stage

PAUSE_SECONDS = 0.4
SEARCH_SECONDS = 30.0
# What an outage may look like to a caller.
OUTAGES = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED)


@dataclass
class Searcher:
    """``failed`` counts reasons of outages; the rest must stay empty."""

    stage: Stage
    load: Load
    random: Random
    searches: int = 0
    failed: dict[str, int] = field(default_factory=dict)
    missed: list[str] = field(default_factory=list)
    shown_deleted: list[str] = field(default_factory=list)
    wrong_errors: list[str] = field(default_factory=list)

    async def go_on(self, over: asyncio.Event) -> None:
        """One search after the other."""
        async with connect(self.stage.stack.environ) as stubs:
            while not over.is_set():
                try:
                    await self._search(stubs)
                except grpc.aio.AioRpcError as raised:
                    self._note(raised)
                await asyncio.sleep(PAUSE_SECONDS)

    async def _search(self, stubs: Stubs) -> None:
        dock = self.random.randrange(DOCKS)
        ts, word = self.load.facts[dock]
        deleted = self._acknowledged_deletions()
        gone_word = self.random.choice(self._words_of(deleted) or [""])
        channel_ids = [self.stage.control.find_channel(name).channel_id for name in OPEN]
        request = gateway_pb2.SearchRequest(
            reader=gateway_pb2.Reader(workspace_id=self.stage.team_id, channel_ids=channel_ids),
            question=f"dock {dock} {word} {gone_word}",
        )
        self.searches += 1
        found = (await stubs.gateway.Search(request, timeout=SEARCH_SECONDS)).result
        shown = {hit.message.message_id for hit in found.hits}
        if self._message_id(channel_ids[0], ts) not in shown:
            self.missed.append(f"dock {dock} ({found.reason or 'not among the hits'})")
        self.shown_deleted += sorted(shown & {self._message_id(*each) for each in deleted})

    def _acknowledged_deletions(self) -> set[tuple[str, str]]:
        events = (
            delivery.envelope["event"]
            for delivery in self.stage.control.sender.deliveries.values()
            if delivery.state == "acknowledged"
        )
        return {(channel_id_of(e), deleted_ts_of(e)) for e in events if deleted_ts_of(e)}

    def _words_of(self, deleted: set[tuple[str, str]]) -> list[str]:
        return [self.load.words[each][-1] for each in sorted(deleted) if each in self.load.words]

    def _message_id(self, channel_id: str, ts: str) -> str:
        return slack_message_id(self.stage.team_id, channel_id, ts)

    def _note(self, raised: grpc.aio.AioRpcError) -> None:
        error = from_rpc_error(raised)
        if error.code in OUTAGES:
            self.failed[error.reason_name] = self.failed.get(error.reason_name, 0) + 1
        else:
            self.wrong_errors.append(f"{error.code.name} {error.message}")
