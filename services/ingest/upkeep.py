"""Work that outlives the call that asked for it: filling and clearing generations, and deleting
what a workspace's settings no longer keep.

All of it goes by small transactions and repeats harmlessly, so a restarted process just begins
again.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Awaitable, Callable

import psycopg
import psycopg_pool
import structlog

from services.ingest.build_generation import fill_generation
from services.ingest.clear_generation import clear_generation
from services.ingest.fail_generation import fail_generation
from services.ingest.generations import read_generations
from services.ingest.reconcile import reconcile_after_restart
from services.ingest.resources import Resources
from services.ingest.retention import apply_settings, apply_settings_of
from services.ingest.workspaces import Workspace, all_workspaces, changing
from services.runtime import db

RETRY_SECONDS = 2.0
DAY_SECONDS = 86_400.0

Key = tuple[str, str]
Work = Callable[[], Awaitable[None]]
AfterDefect = Callable[[BaseException], Awaitable[None]]

log = structlog.get_logger("upkeep")


class Upkeep:
    """The background work of one process; one task a generation."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        self._tasks: dict[Key, asyncio.Task[None]] = {}
        self._daily: asyncio.Task[None] | None = None

    def resume(self) -> None:
        """Take up what an earlier process left, as soon as the database answers."""
        self._start(("", "resume"), self._resume_all)
        # Events that nobody took while no process ran are found by reading again.
        self._start(("", "history"), lambda: reconcile_after_restart(self._resources))

    def keep_daily(self) -> None:
        """Delete what is kept no longer, now and every day."""
        self._daily = asyncio.create_task(self._every_day())

    def apply_settings(self, workspace_id: str) -> None:
        """Delete what a workspace's changed settings no longer keep."""
        self._start(
            (workspace_id, "settings"), lambda: apply_settings_of(self._resources, workspace_id)
        )

    def fill(self, workspace: Workspace, generation_id: str) -> None:
        """Fill a generation unless that is under way; a defect on the way makes it fail."""
        key = (workspace.workspace_id, generation_id)
        self._start(
            key,
            lambda: fill_generation(self._resources, workspace, generation_id),
            lambda defect: self._give_up(key, defect),
        )

    def clear(self, workspace_id: str, generation_id: str) -> None:
        """Delete the rows of a generation that ended."""
        self._start(
            (workspace_id, generation_id),
            lambda: clear_generation(self._resources, workspace_id, generation_id),
        )

    async def finished(self) -> None:
        """Wait until nothing is under way."""
        while self._tasks:
            await asyncio.gather(*self._tasks.values())

    async def stop(self) -> None:
        """Leave everything where it is."""
        tasks = [*self._tasks.values(), *filter(None, [self._daily])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _every_day(self) -> None:
        while True:
            self._start(("", "settings"), lambda: apply_settings(self._resources))
            await asyncio.sleep(DAY_SECONDS)

    async def _resume_all(self) -> None:
        for workspace in await all_workspaces(self._resources.queue_pool):
            async with db.reading(self._resources.pool, workspace.workspace_id) as connection:
                generations = await read_generations(connection, workspace.workspace_id)
            for generation in generations:
                if generation.state == "building" and not generation.is_sealed:
                    self.fill(workspace, generation.generation_id)
                elif generation.state in ("retired", "failed"):
                    self.clear(workspace.workspace_id, generation.generation_id)

    def _start(self, key: Key, work: Work, after_defect: AfterDefect | None = None) -> None:
        if key not in self._tasks:
            # A context of its own: the asking call's deadline is not this work's.
            task = asyncio.create_task(_until_done(work), context=contextvars.Context())
            self._tasks[key] = task
            task.add_done_callback(lambda ended: self._ended(key, ended, after_defect))

    def _ended(self, key: Key, task: asyncio.Task[None], after_defect: AfterDefect | None) -> None:
        del self._tasks[key]
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("defect", workspace_id=key[0], work=key[1], exc_info=error)
            if after_defect is not None:
                self._start(key, lambda: after_defect(error))

    async def _give_up(self, key: Key, defect: BaseException) -> None:
        """Whatever was written of the generation goes; what serves is untouched."""
        workspace_id, generation_id = key
        reason = f"It could not be filled ({type(defect).__name__}). The log has the details."
        async with changing(self._resources.pool, workspace_id) as connection:
            await fail_generation(connection, workspace_id, generation_id, reason)
        await clear_generation(self._resources, workspace_id, generation_id)


async def _until_done(work: Work) -> None:
    """Run to the end; while the database is away, begin again every two seconds."""
    while True:
        try:
            await work()
        except (psycopg.OperationalError, psycopg_pool.PoolTimeout):
            await asyncio.sleep(RETRY_SECONDS)
        else:
            return
