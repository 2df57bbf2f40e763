"""Fixtures: a real PostgreSQL for the run, a fresh database for each test, callers, gRPC peers.

A run without a database fails; it never skips.
"""

from __future__ import annotations

import os
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import psycopg
import pytest

from services.ingest.migrate import migrate, read_migrations
from services.runtime import db
from services.runtime.callers import Callers, write_default_callers
from services.runtime.client import Peer
from services.runtime.server import Listener, Servicers, serving
from services.stack.postgres import EmbeddedPostgres

# Each process of a parallel run has its own.
TEMPLATE = f"recall_template_{os.getpid()}"


def free_port() -> int:
    """A loopback port that nobody listens on right now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@pytest.fixture(scope="session")
def postgres_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The owner's URL of a server with a migrated template database.

    RECALL_TEST_DATABASE_URL names another server to use instead of the embedded one.
    """
    given = os.environ.get("RECALL_TEST_DATABASE_URL", "")
    server: EmbeddedPostgres | None = None
    if not given:
        folder = tmp_path_factory.mktemp("postgres")
        server = EmbeddedPostgres(folder, free_port(), durable=False)
    url = server.start() if server else given
    try:
        _recreate(url, TEMPLATE)
        migrate(with_database(url, TEMPLATE), read_migrations())
        yield url
    finally:
        if server:
            server.stop()


@pytest.fixture
def database_url(postgres_url: str, request: pytest.FixtureRequest) -> Iterator[str]:
    """The owner's URL of a fresh, migrated database for one test."""
    name = f"recall_test_{os.getpid()}_{abs(hash(request.node.nodeid)) % 10**9}"
    _recreate(postgres_url, name, TEMPLATE)
    yield with_database(postgres_url, name)
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)'.encode())


@pytest.fixture
async def ingest_pool(database_url: str) -> AsyncIterator[db.Pool]:
    """A pool as the ingest role."""
    async with db.open_pool(db.url_as_role(database_url, db.INGEST_ROLE)) as pool:
        yield pool


@pytest.fixture
async def retrieve_pool(database_url: str) -> AsyncIterator[db.Pool]:
    """A pool as the read-only retrieve role."""
    async with db.open_pool(db.url_as_role(database_url, db.RETRIEVE_ROLE)) as pool:
        yield pool


@pytest.fixture
async def queue_pool(database_url: str) -> AsyncIterator[db.Pool]:
    """A pool as the queue role."""
    async with db.open_pool(db.url_as_role(database_url, db.QUEUE_ROLE)) as pool:
        yield pool


@pytest.fixture
def callers(tmp_path: Path) -> Callers:
    """Callers "operator" and "gateway", who may read everything."""
    return Callers(write_default_callers(tmp_path / "home", ("operator", "gateway")))


Serve = Callable[[Servicers], AbstractAsyncContextManager[Peer]]


@pytest.fixture
def serve(callers: Callers) -> Serve:
    """Serve servicers over real gRPC on a free port; yields the operator's peer."""

    @asynccontextmanager
    async def serve_servicers(servicers: Servicers) -> AsyncIterator[Peer]:
        async with serving(Listener("127.0.0.1", 0), callers, servicers) as running:
            peer = Peer(f"127.0.0.1:{running.port}", lambda: callers.token_of("operator"))
            yield peer
            await peer.close()

    return serve_servicers


def with_database(url: str, name: str) -> str:
    """The same server's URL with another database."""
    return url.rsplit("/", 1)[0] + "/" + name


def _recreate(url: str, name: str, template: str = "template0") -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)'.encode())
        connection.execute(f'CREATE DATABASE "{name}" TEMPLATE "{template}"'.encode())
