"""Rules of the worker process, as the operating system sees it."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from services.embedding.local import IDENTITY
from services.ingest import queue
from services.runtime import db
from tests.chunk_rows import WORKSPACE, ChunkRows
from tests.waiting import until

# More than a batch, so that a worker can be stopped between two.
TEXTS = {f"c{number:03}": f"message {number} about the payments worker" for number in range(300)}


def command(database_url: str) -> subprocess.Popen[bytes]:
    environ = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
    environ["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    if database_url:
        environ["DATABASE_URL"] = database_url
    return subprocess.Popen(
        [sys.executable, "-m", "services.ingest.worker"],
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


@contextmanager
def worker(database_url: str) -> Iterator[subprocess.Popen[bytes]]:
    process = command(database_url)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.fixture
async def rows(database_url: str, ingest_pool: db.Pool) -> ChunkRows:
    made = ChunkRows(database_url)
    made.add_generation(IDENTITY, "g1")
    made.add_chunks(384, "g1", TEXTS)
    async with db.writing(ingest_pool, WORKSPACE) as connection:
        await queue.enqueue_embedding(connection, WORKSPACE, "g1")
    return made


def missing(rows: ChunkRows) -> int:
    return sum(vector is None for vector in rows.vectors(384, "g1").values())


async def test_a_killed_worker_s_job_is_finished_by_the_next(
    rows: ChunkRows, database_url: str
) -> None:
    with worker(database_url):
        await until(lambda: missing(rows) < len(TEXTS))
    with worker(database_url) as second:
        await until(lambda: missing(rows) == 0)
        second.send_signal(signal.SIGTERM)
        assert await asyncio.to_thread(second.wait, 30) == 0


async def test_a_worker_that_is_told_to_stop_keeps_its_work_and_leaves_no_lease(
    rows: ChunkRows, database_url: str, queue_pool: db.Pool
) -> None:
    with worker(database_url) as process:
        await until(lambda: missing(rows) < len(TEXTS))
        process.send_signal(signal.SIGTERM)
        assert await asyncio.to_thread(process.wait, 30) == 0
    async with db.across_tenants(queue_pool) as connection:
        row = await db.fetch_one(connection, b"SELECT state, attempts FROM jobs", {})
    assert row in ([("ready", 0)] if missing(rows) else [("ready", 0), ("done", 0)])


def test_a_worker_without_a_database_url_says_so_in_one_line() -> None:
    process = command("")
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 2
    assert errors.decode().startswith("DATABASE_URL is not set.")
    assert errors.decode().count("\n") == 1
