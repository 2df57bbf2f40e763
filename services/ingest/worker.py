"""The worker process of ingest: ``python -m services.ingest.worker``.

Holds the one copy of the local model that does bulk work, with one thread and low priority, so
that questions on the same machine come first.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal

from services.embedding.registry import Embedders
from services.ingest.config import IngestConfig, read_config
from services.ingest.embedding import fill_vectors
from services.ingest.forget_jobs import forget_jobs
from services.ingest.job_loop import Handler, JobLoop
from services.ingest.queue import Job, Terms
from services.ingest.wakeups import listen
from services.runtime import db, logs
from services.runtime.server import exit_with_faults

NICENESS = 10
POOL_SIZE = 4


def handlers(pool: db.Pool, embedders: Embedders) -> dict[str, Handler]:
    """The handler of each kind of job that this worker runs."""

    async def embedding(job: Job) -> None:
        await fill_vectors(pool, embedders, job.workspace_id, job.payload["generation_id"])

    return {"embedding": embedding}


async def work(config: IngestConfig) -> None:
    """Run jobs until SIGTERM or SIGINT."""
    embedders = Embedders(config.embedding)
    async with (
        contextlib.aclosing(embedders),
        db.open_pool(config.queue_url, size=POOL_SIZE) as queue_pool,
        db.open_pool(config.ingest_url, size=POOL_SIZE) as ingest_pool,
    ):
        terms = Terms(max_attempts=config.job_max_attempts)
        jobs = JobLoop(queue_pool, handlers(ingest_pool, embedders), random.random, terms)
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, jobs.stop)
        beside = (
            asyncio.create_task(listen(config.queue_url, jobs.wake)),
            asyncio.create_task(forget_jobs(queue_pool)),
        )
        try:
            await jobs.run()
        finally:
            for task in beside:
                task.cancel()


def main() -> None:
    """Configure the process and work."""
    os.nice(NICENESS)
    logs.configure("ingest-worker")
    exit_with_faults(lambda: asyncio.run(work(read_config(os.environ))))


if __name__ == "__main__":
    main()
