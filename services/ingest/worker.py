"""The worker process of ingest: ``python -m services.ingest.worker``.

Holds the one copy of the local model that does bulk work, with one thread and low priority, so
that questions on the same machine come first.
"""

from __future__ import annotations

import asyncio
import os
import signal
from functools import partial

from services.ingest.assembly import open_resources
from services.ingest.backfill import handle_backfill
from services.ingest.config import IngestConfig, read_config
from services.ingest.embedding import fill_vectors
from services.ingest.event import handle_event, handle_events
from services.ingest.forget_jobs import forget_jobs
from services.ingest.history_run import Backfill, OpenSlack
from services.ingest.job_loop import Handler, JobLoop
from services.ingest.open_slack import SlackDoor, open_session
from services.ingest.purge import handle_purge
from services.ingest.queue import Job
from services.ingest.reconcile import reconcile
from services.ingest.rendering import handle_rendering
from services.ingest.resources import Resources
from services.ingest.wakeups import listen
from services.runtime import db, logs
from services.runtime.config import Settings
from services.runtime.server import Listener, exit_with_faults
from services.runtime.worker_health import read_health_listener, telling_health

NICENESS = 10


def handlers(resources: Resources, open_slack: OpenSlack) -> dict[str, Handler]:
    """The handler of each kind of job that this worker runs."""
    backfill = Backfill(resources, open_slack)

    async def embedding(job: Job) -> None:
        generation_id = job.payload["generation_id"]
        await fill_vectors(resources.pool, resources.embedders, job.workspace_id, generation_id)

    return {
        "purge": partial(handle_purge, resources),
        "event": partial(handle_event, resources),
        "backfill": partial(handle_backfill, backfill),
        "embedding": embedding,
        "rendering": partial(handle_rendering, resources),
    }


async def work(config: IngestConfig, health: Listener | None = None) -> None:
    """Run jobs until SIGTERM or SIGINT; tell probes how it is where ``health`` says."""
    async with open_resources(config) as resources, open_session() as session:
        door = SlackDoor(resources, config.slack, session)
        jobs = JobLoop(
            resources.queue_pool,
            handlers(resources, door.open),
            resources.jitter,
            resources.job_terms,
            {"event": partial(handle_events, resources)},
        )
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, jobs.stop)
        beside = (
            asyncio.create_task(listen(config.queue_url, jobs.wake)),
            asyncio.create_task(forget_jobs(resources.queue_pool)),
            asyncio.create_task(reconcile(resources)),
        )
        try:
            async with telling_health(health, lambda: db.can_read(resources.pool)):
                await jobs.run()
        finally:
            for task in beside:
                task.cancel()


def main() -> None:
    """Configure the process and work."""
    os.nice(NICENESS)
    logs.configure("ingest-worker")
    exit_with_faults(_work)


def _work() -> None:
    health = read_health_listener(Settings(os.environ), "INGEST_WORKER")
    asyncio.run(work(read_config(os.environ), health))


if __name__ == "__main__":
    main()
