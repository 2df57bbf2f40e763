"""An installed app for integration tests: it is told of events, and its jobs run to their end."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from recall.ingest.v1 import slack_pb2
from services.ingest import queue
from services.ingest.event import handle_event, handle_events
from services.ingest.purge import handle_purge
from services.ingest.rendering import handle_rendering
from services.ingest.resources import Resources
from services.runtime.callers import FILE_NAME
from tests import builders as b
from tests.integration.ingest_fixtures import Ingest, Rows
from tests.slack_events import BOT, BOT_USER, EVENT_TIME, delivery

SETTLE_ROUNDS, SETTLE_SECONDS = 100, 0.1
HANDLERS = {"purge": handle_purge, "event": handle_event, "rendering": handle_rendering}


@dataclass
class App:
    """Delivers events over gRPC and runs the jobs that follow, most urgent first."""

    ingest: Ingest
    resources: Resources
    rows: Rows

    async def tell(
        self,
        event: b.Record,
        event_id: str = "",
        team_id: str = b.TEAM,
        event_time: object = EVENT_TIME,
    ) -> slack_pb2.Recorded.ValueType:
        """Deliver one event; what became of it."""
        request = delivery(event, event_id, team_id, event_time)
        return (await self.ingest.ingest.RecordEvent(request)).recorded

    async def happen(self, *events: b.Record) -> None:
        """Deliver events, one after the other, and do the work of each before the next."""
        for event in events:
            await self.tell(event)
            await self.work()

    async def work(self, *kinds: str) -> None:
        """Run jobs, by default of every kind that this worker can do, until none is left."""
        while jobs := await queue.claim(self.resources.queue_pool, kinds or tuple(HANDLERS)):
            for job in jobs:
                await HANDLERS[job.kind](self.resources, job)
                await queue.complete(self.resources.queue_pool, job)

    async def settle(self) -> None:
        """Run jobs until none is open: one whose row somebody else held for a moment, too."""
        query = "SELECT count(*) FROM jobs WHERE state IN ('ready', 'running') AND kind = ANY (%s)"
        for _ in range(SETTLE_ROUNDS):
            await self.work()
            if not self.rows.one(query, list(HANDLERS)):
                return
            await asyncio.sleep(SETTLE_SECONDS)
        raise AssertionError("jobs stay open")

    async def work_together(self) -> None:
        """Handle the events of one workspace as a worker does, several in one transaction."""
        pool = self.resources.queue_pool
        while jobs := await queue.claim(pool, ("event",), batches={"event": 32}):
            await handle_events(self.resources, jobs)
            assert len(await queue.complete_all(pool, jobs)) == len(jobs)


@pytest.fixture
def app(ingest: Ingest, resources: Resources, rows: Rows) -> App:
    """Workspace W of the builders' team, with an app and a serving generation, no message."""
    install(rows, "W", b.TEAM)
    return App(ingest, resources, rows)


def install(rows: Rows, workspace_id: str, team_id: str) -> None:
    """A workspace with an installed app, as its owner sees it."""
    rows.execute(
        "INSERT INTO workspaces (workspace_id, source, team_id) VALUES (%s, 'slack', %s)",
        workspace_id,
        team_id,
    )
    rows.execute(
        "INSERT INTO installations (workspace_id, installation_id, team_id, bot_user_id, bot_id, "
        "bot_token, installed_at) VALUES (%s, 'i', %s, %s, %s, 'secret', '2026-03-01')",
        workspace_id,
        team_id,
        BOT_USER,
        BOT,
    )
    rows.execute(
        "INSERT INTO embedders VALUES ('f', 'local', 'local', 'm', 'r', 384) ON CONFLICT DO NOTHING"
    )
    rows.execute(
        "INSERT INTO generations (workspace_id, generation_id, source, state, chunker_version, "
        "embedder_fingerprint, width, promoted_at) VALUES (%s, 'g', 'slack', 'active', '1', 'f', "
        "384, now())",
        workspace_id,
    )


def limit_callers(home: Path, channel_id: str) -> None:
    """From now on every caller may read one channel only, of every workspace."""
    path = home / FILE_NAME
    listed = json.loads(path.read_text("utf-8"))
    for caller in listed["callers"]:
        caller["channels"] = [channel_id]
    path.write_text(json.dumps(listed), "utf-8")
