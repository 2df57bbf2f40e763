"""The real ingest and the real search on one database, as the property test drives them."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any

import psycopg

from services.corpus import Filter, Message, QueryContext, Source
from services.embedding.local import IDENTITY
from services.embedding.registry import EmbeddingSettings
from services.ingest import queue
from services.ingest.backfill import handle_backfill
from services.ingest.chunking import Encoder
from services.ingest.embedding import fill_vectors
from services.ingest.event import handle_event
from services.ingest.history_run import Backfill
from services.ingest.job_loop import Handler
from services.ingest.pacing import Pace
from services.ingest.purge import handle_purge
from services.ingest.queue import Job
from services.ingest.record_event import Recorded, SlackDelivery, record_event
from services.ingest.rendering import handle_rendering
from services.ingest.resources import Resources
from services.retrieve.read_messages import read_messages
from services.retrieve.read_thread import read_thread
from services.retrieve.read_timeline import PageRequest, read_timeline
from services.retrieve.search import Found, Question, Retrieval, search
from services.runtime import db
from services.runtime.callers import EVERYTHING, Caller
from services.runtime.errors import CallError
from tests.integration.ingest_fixtures import Rows
from tests.property.hash_embedder import HashEmbedders
from tests.property.slack_pages import Pages
from tests.property.slack_world import BOT_USER, PEOPLE, TEAMS, Fact, Told, World, name_of
from tests.slack_events import envelope

GATEWAY = Caller(
    "gateway", "a token that is long", frozenset({EVERYTHING}), frozenset({EVERYTHING})
)
PAGE_SIZE = 3
REST_SECONDS = 10.0

_BUSY = (
    "SELECT usename, state, query FROM pg_stat_activity WHERE datname = current_database() "
    "AND pid <> pg_backend_pid() AND state <> 'idle'"
)


@dataclass
class System:
    """Open connections; ``rows`` looks into the database as its owner."""

    resources: Resources
    retrieval: Retrieval
    rows: Rows

    def begin(self, world: World) -> None:
        """Empty workspaces with the app installed, and nothing left of what was before."""
        for table in ("jobs", "purge_reports", "workspaces", "embedders"):
            self.rows.execute(f"DELETE FROM {table}")
        self.rows.execute(
            "INSERT INTO embedders (fingerprint, name, provider, model, revision, width) "
            "VALUES (%s, 'local', 'local', 'm', 'r', %s)",
            IDENTITY.fingerprint,
            IDENTITY.width,
        )
        for team_id in TEAMS:
            _install(self.rows, team_id)

    def handlers(self, pages: Pages) -> dict[str, Handler]:
        """The handler of each kind of job, as the worker has them."""

        async def pause(seconds: float) -> None:
            pages.world.seconds += int(seconds) + 1

        backfill = Backfill(self.resources, pages.open, lambda: pages.world.now, pause)
        return {
            "purge": partial(handle_purge, self.resources),
            "event": partial(handle_event, self.resources),
            "backfill": partial(handle_backfill, backfill),
            "embedding": self._embed,
            "rendering": partial(handle_rendering, self.resources),
        }

    async def _embed(self, job: Job) -> None:
        generation_id = job.payload["generation_id"]
        resources = self.resources
        await fill_vectors(resources.pool, resources.embedders, job.workspace_id, generation_id)

    async def record(self, told: Told) -> Recorded:
        """Deliver an event."""
        team_id = told.fact.team_id
        body = envelope(told.event, told.event_id, team_id)
        return await record_event(
            self.resources, GATEWAY, SlackDelivery(team_id, "", told.event_id, body)
        )

    async def claim(self, kinds: Sequence[str], limit: int = 1) -> list[Job]:
        """The next jobs, of any workspace."""
        return await queue.claim(self.resources.queue_pool, kinds, limit)

    # What the database's owner sees and does ----------------------------------------------------

    def is_recorded(self, told: Told) -> bool:
        """Whether an event is a job."""
        query = "SELECT count(*) FROM jobs WHERE workspace_id = %s AND dedup_key = %s"
        return bool(self.rows.one(query, told.fact.team_id, told.event_id))

    def is_there(self, job: Job) -> bool:
        """Whether a job's row exists."""
        query = "SELECT count(*) FROM jobs WHERE workspace_id = %s AND job_id = %s"
        return bool(self.rows.one(query, job.workspace_id, job.job_id))

    def is_buried(self, workspace_id: str, message_id: str) -> bool:
        """Whether a message has a tombstone."""
        query = "SELECT count(*) FROM tombstones WHERE workspace_id = %s AND message_id = %s"
        return bool(self.rows.one(query, workspace_id, message_id))

    def newest_ts(self, workspace_id: str, channel_id: str) -> str:
        """ts of the newest stored message of a channel."""
        query = (
            "SELECT coalesce(max(ts), '') FROM messages WHERE workspace_id = %s AND channel_id = %s"
        )
        return str(self.rows.one(query, workspace_id, channel_id))

    def coming_or_going(self, fact: Fact) -> tuple[str, str | None]:
        """What purges keep out of a channel, and when the person joined; None outside."""
        hold = (
            "SELECT coalesce(max(nullif(hold_ts, '')::numeric)::text, '') FROM purge_reports "
            "WHERE workspace_id = %s AND channel_id = %s"
        )
        joined = (
            "SELECT max(joined_ts) FROM channel_members "
            "WHERE workspace_id = %s AND channel_id = %s AND person_id = %s"
        )
        place = (fact.team_id, fact.channel_id)
        return str(self.rows.one(hold, *place)), self.rows.one(joined, *place, fact.person_id)

    def message_versions(self, workspace_id: str) -> list[tuple[Any, ...]]:
        """Every row version of a workspace's messages: equal ones mean that nothing was written."""
        return self.rows.all(
            "SELECT ctid::text, xmin::text FROM messages WHERE workspace_id = %s ORDER BY 1",
            workspace_id,
        )

    def fall_silent(self, job: Job) -> None:
        """The job's holder has not been heard of for long."""
        self.rows.execute(
            "UPDATE jobs SET heartbeat_at = heartbeat_at - interval '1 day' "
            "WHERE workspace_id = %s AND job_id = %s",
            job.workspace_id,
            job.job_id,
        )

    def hurry(self) -> None:
        """What waits for its time has it now; who fell silent is not heard of for long."""
        self.rows.execute(
            "UPDATE jobs SET heartbeat_at = heartbeat_at - interval '1 day' WHERE state = 'running'"
        )
        self.rows.execute("UPDATE jobs SET run_at = now() WHERE state = 'ready' AND run_at > now()")

    def is_any_waiting(self) -> bool:
        """Whether a job waits for a later time."""
        return bool(self.rows.one("SELECT count(*) FROM jobs WHERE state = 'ready'"))

    def dead_jobs(self) -> list[tuple[Any, ...]]:
        """Workspace and id of every job that was given up."""
        return self.rows.all("SELECT workspace_id, job_id FROM jobs WHERE state = 'dead'")

    def open_jobs(self) -> list[tuple[Any, ...]]:
        """What is not done."""
        return self.rows.all(
            "SELECT workspace_id, kind, dedup_key, state, attempts, last_error FROM jobs "
            "WHERE state <> 'done'"
        )

    async def at_rest(self) -> None:
        """Wait until the server has ended what lost connections had begun."""
        until = time.monotonic() + REST_SECONDS
        while busy := self.rows.all(_BUSY):
            assert time.monotonic() < until, f"the server is still busy: {busy}"
            await asyncio.sleep(0.001)

    # What readers get ---------------------------------------------------------------------------

    async def ask(self, context: QueryContext, question: str) -> Found:
        """A search that returns as much as it can."""
        return await search(Question(context, question, limit=50), self.retrieval)

    async def reread(self, context: QueryContext, message_ids: Sequence[str]) -> list[Message]:
        """Messages by id."""
        return await read_messages(self.retrieval.pool, context, message_ids)

    async def timeline(self, context: QueryContext) -> Sequence[Message]:
        """Everything in the order of time."""
        page = await read_timeline(self.retrieval.pool, context, Filter(), PageRequest())
        return page.messages

    async def thread(self, context: QueryContext, message_id: str) -> list[Message]:
        """A thread; nothing when it is not there for the reader."""
        try:
            return await read_thread(self.retrieval.pool, context, message_id)
        except CallError:
            return []


def context_of(team_id: str, channel_ids: Sequence[str]) -> QueryContext:
    """A reader of some channels."""
    return QueryContext(Source.SLACK, team_id, tuple(channel_ids))


@asynccontextmanager
async def opened(url: str, encoder: Encoder) -> AsyncIterator[System]:
    """The system on a migrated database, given by its owner's URL."""
    numbers = itertools.count(1)
    embedders = HashEmbedders(EmbeddingSettings())
    async with (
        db.open_pool(db.url_as_role(url, db.INGEST_ROLE), size=4) as pool,
        db.open_pool(db.url_as_role(url, db.QUEUE_ROLE), size=2) as queue_pool,
        db.open_pool(db.url_as_role(url, db.RETRIEVE_ROLE), size=2) as retrieve_pool,
    ):
        resources = Resources(
            pool, queue_pool, encoder, embedders, lambda: f"g-{next(numbers)}",
            jitter=lambda: 0.5, history_pace=Pace(0.01, PAGE_SIZE),
        )  # fmt: skip
        clock = asyncio.get_running_loop().time
        retrieval = Retrieval(retrieve_pool, embedders, lambda: datetime.now(UTC), clock)
        connection: psycopg.Connection[tuple[Any, ...]] = psycopg.connect(url, autocommit=True)
        with connection:
            yield System(resources, retrieval, Rows(connection))


def _install(rows: Rows, team_id: str) -> None:
    rows.execute(
        "INSERT INTO workspaces (workspace_id, source, team_id) VALUES (%s, 'slack', %s)",
        team_id,
        team_id,
    )
    rows.execute(
        "INSERT INTO installations (workspace_id, installation_id, team_id, bot_user_id, "
        "bot_token) VALUES (%s, 'i', %s, %s, 'secret')",
        team_id,
        team_id,
        BOT_USER,
    )
    for person_id in PEOPLE:
        rows.execute(
            "INSERT INTO people (workspace_id, person_id, display_name, handle, team_id) "
            "VALUES (%s, %s, %s, %s, %s)",
            team_id, person_id, name_of(person_id), person_id.lower(), team_id,
        )  # fmt: skip
    rows.execute(
        "INSERT INTO generations (workspace_id, generation_id, source, state, chunker_version, "
        "embedder_fingerprint, width, promoted_at) "
        "VALUES (%s, 'g', 'slack', 'active', '1', %s, %s, now())",
        team_id,
        IDENTITY.fingerprint,
        IDENTITY.width,
    )
