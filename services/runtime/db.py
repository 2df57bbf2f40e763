"""Database access: one pool a process and role, one tenant a transaction.

Row-level security reads the tenant from ``recall.workspace_id``; ``current_workspace()`` raises
when it is unset, so a transaction opened past this module reads nothing and says so.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import psycopg
import psycopg_pool
import structlog
from psycopg import IsolationLevel
from psycopg.rows import TupleRow

from services.runtime import call as calls

INGEST_ROLE = "recall_ingest"
RETRIEVE_ROLE = "recall_retrieve"
QUEUE_ROLE = "recall_queue"

# How long a call waits for a connection, and the longest statement outside a call.
CONNECTION_WAIT_SECONDS = 3.0
STATEMENT_SECONDS = 60.0
CONNECT_SECONDS = 3

Connection = psycopg.AsyncConnection[TupleRow]
Pool = psycopg_pool.AsyncConnectionPool[Connection]

log = structlog.get_logger("db")

_TENANT = (
    b"SELECT set_config('recall.workspace_id', %s, true), set_config('statement_timeout', %s, true)"
)
_TIMEOUT = b"SELECT set_config('statement_timeout', %s, true)"


def url_as_role(url: str, role: str) -> str:
    """The owner's URL, for connections that act as ``role`` from their first statement."""
    parts = urlsplit(url)
    query = dict(parse_qsl(parts.query))
    query["options"] = (query.get("options", "") + f" -c role={role}").strip()
    # libpq decodes %20 but not "+".
    return urlunsplit(parts._replace(query=urlencode(query).replace("+", "%20")))


@asynccontextmanager
async def open_pool(url: str, *, size: int = 8) -> AsyncIterator[Pool]:
    """A pool that starts without a database, checks connections before use, and recovers."""
    pool: Pool = psycopg_pool.AsyncConnectionPool(
        url,
        min_size=1,
        max_size=size,
        open=False,
        timeout=CONNECTION_WAIT_SECONDS,
        # Short, so that a database that comes back is used again within seconds.
        reconnect_timeout=5.0,
        check=psycopg_pool.AsyncConnectionPool.check_connection,
        kwargs={"connect_timeout": CONNECT_SECONDS, "autocommit": True},
    )
    await pool.open(wait=False)
    try:
        yield pool
    finally:
        await pool.close(timeout=2.0)


async def can_read(pool: Pool) -> bool:
    """Whether a connection answers within a second (readiness)."""
    try:
        async with pool.connection(timeout=1.0) as connection:
            await connection.execute("SELECT 1")
    except (psycopg.Error, psycopg_pool.PoolTimeout):
        return False
    return True


@asynccontextmanager
async def writing(pool: Pool, workspace_id: str) -> AsyncIterator[Connection]:
    """One READ COMMITTED transaction of one tenant; commits at the end of the block."""
    async with pool.connection() as connection:
        await connection.set_isolation_level(None)
        await connection.set_read_only(None)
        async with connection.transaction():
            await _enter_tenant(connection, workspace_id)
            yield connection


@asynccontextmanager
async def reading(pool: Pool, workspace_id: str) -> AsyncIterator[Connection]:
    """One REPEATABLE READ, READ ONLY transaction of one tenant: every read sees one snapshot."""
    async with pool.connection() as connection:
        await connection.set_isolation_level(IsolationLevel.REPEATABLE_READ)
        await connection.set_read_only(True)
        async with connection.transaction():
            await _enter_tenant(connection, workspace_id)
            yield connection


@asynccontextmanager
async def across_tenants(pool: Pool) -> AsyncIterator[Connection]:
    """One transaction without a tenant, for the queue role's own tables only."""
    async with pool.connection() as connection:
        await connection.set_isolation_level(None)
        await connection.set_read_only(None)
        async with connection.transaction():
            await connection.execute(_TIMEOUT, (_timeout(),))
            yield connection


async def fetch_all(
    connection: Connection, statement: bytes, parameters: dict[str, Any]
) -> list[TupleRow]:
    """All rows of a statement."""
    cursor = await connection.execute(statement, parameters)
    return await cursor.fetchall()


async def fetch_one(
    connection: Connection, statement: bytes, parameters: dict[str, Any]
) -> TupleRow | None:
    """The first row of a statement, or None."""
    cursor = await connection.execute(statement, parameters)
    return await cursor.fetchone()


async def _enter_tenant(connection: Connection, workspace_id: str) -> None:
    await connection.execute(_TENANT, (workspace_id, _timeout()))


def _timeout() -> str:
    """statement_timeout in milliseconds: what the call in progress has left."""
    return str(max(1, int(calls.remaining_seconds(STATEMENT_SECONDS) * 1000)))
