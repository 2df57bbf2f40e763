"""The job "rendering": chunks under the new name of a channel or person, newest first.

Every thread that may show the name is compared with what it should be; equal chunks stay, and a
text that was embedded before takes its vector from the cache. Names inside a message's own words
("Ada will do it") are the author's words and stay as they were read.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from services.ingest.import_batch import open_scope
from services.ingest.queue import Job, NewJob, enqueue, still_holds
from services.ingest.resources import Resources
from services.ingest.thread_index import Written, index_threads, settle
from services.ingest.workspaces import changing, read_workspace
from services.runtime import db, sql

THREADS_AT_ONCE = 100
# Then other work of the same worker has its turn.
BATCHES_A_RUN = 20

_STATEMENTS = sql.load("services.ingest", "rendering.sql")


@dataclass(frozen=True)
class Progress:
    """What to render, and the thread after which to go on."""

    channel_id: str = ""
    person_id: str = ""
    before_at: str | None = None
    before_root: str = ""

    @property
    def payload(self) -> dict[str, Any]:
        """As the job carries it."""
        return dict(vars(self))


async def ask_to_render(
    connection: db.Connection, workspace_id: str, *, channel_id: str = "", person_id: str = ""
) -> None:
    """Ask for what shows a channel's or a person's name to be rendered again, from the newest."""
    key = f"channel:{channel_id}" if channel_id else f"person:{person_id}"
    progress = Progress(channel_id, person_id)
    await enqueue(connection, workspace_id, NewJob("rendering", key, progress.payload))


async def handle_rendering(resources: Resources, job: Job) -> None:
    """Render some threads a transaction; after a while ask for the rest and end."""
    progress: Progress | None = Progress(**job.payload)
    for _ in range(BATCHES_A_RUN):
        if progress is None:
            return
        progress = await _render_some(resources, job, progress)
    if progress is not None:
        async with db.writing(resources.pool, job.workspace_id) as connection:
            await _go_on_later(connection, job, progress)


async def _render_some(resources: Resources, job: Job, progress: Progress) -> Progress | None:
    """Render the next threads; None when there are none, or the job is somebody else's."""
    async with changing(resources.pool, job.workspace_id) as connection:
        if not await still_holds(connection, job):
            return None
        threads = await _next_threads(connection, job.workspace_id, progress)
        if not threads:
            return None
        roots = [root_id for root_id, _ in threads]
        if progress.person_id:
            await connection.execute(
                _STATEMENTS["follow_directory"],
                {
                    "workspace_id": job.workspace_id,
                    "person_id": progress.person_id,
                    "thread_root_ids": roots,
                },
            )
        workspace = await read_workspace(connection, job.workspace_id)
        scope = await open_scope(connection, workspace, resources)
        written = Written()
        await index_threads(scope, roots, written)
        await settle(scope, written)
    last_root, last_at = threads[-1]
    return replace(progress, before_at=last_at.isoformat(), before_root=last_root)


async def _next_threads(
    connection: db.Connection, workspace_id: str, progress: Progress
) -> Sequence[tuple[str, datetime]]:
    rows = await db.fetch_all(
        connection,
        _STATEMENTS["next_threads"],
        {"workspace_id": workspace_id, "limit": THREADS_AT_ONCE, **progress.payload},
    )
    return [(row[0], row[1]) for row in rows]


async def _go_on_later(connection: db.Connection, job: Job, progress: Progress) -> None:
    await connection.execute(
        _STATEMENTS["go_on_later"],
        {
            "workspace_id": job.workspace_id,
            "job_id": job.job_id,
            "claim_number": job.claim_number,
            "payload": json.dumps(progress.payload),
        },
    )
