"""Deletes finished jobs once nobody needs to know of them any more."""

from __future__ import annotations

import asyncio
import contextlib

import psycopg
import psycopg_pool

from services.ingest import queue
from services.runtime import db

INTERVAL_SECONDS = 600.0
STEP_JOBS = 1000


async def forget_jobs(queue_pool: db.Pool) -> None:
    """Look every ten minutes, until cancelled. Any number of processes may."""
    while True:
        with contextlib.suppress(psycopg.OperationalError, psycopg_pool.PoolTimeout):
            while await queue.forget_finished(queue_pool, STEP_JOBS) == STEP_JOBS:
                pass
        await asyncio.sleep(INTERVAL_SECONDS)
