"""One build of a collection at a time."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import grpc

from recall.error.v1 import error_pb2
from services.runtime import db, sql
from services.runtime.errors import CallError

_STATEMENTS = sql.load("services.ingest", "documents.sql")


@asynccontextmanager
async def only_build(pool: db.Pool, workspace_id: str, collection: str) -> AsyncIterator[None]:
    """Inside of the block nobody else builds the collection.

    A second build is refused instead of waiting: CallError CONCURRENT_CHANGE. The database gives
    the lock back when its connection ends, however that comes about.
    """
    key = {"workspace_id": workspace_id, "collection": collection}
    async with pool.connection() as connection:
        await connection.set_autocommit(True)
        try:
            row = await db.fetch_one(connection, _STATEMENTS["try_lock"], key)
            if row is None or not row[0]:
                raise _busy(collection)
            try:
                yield
            finally:
                await connection.execute(_STATEMENTS["unlock"], key)
        finally:
            await connection.set_autocommit(False)


def _busy(collection: str) -> CallError:
    return CallError(
        grpc.StatusCode.ABORTED,
        error_pb2.ERROR_REASON_CONCURRENT_CHANGE,
        f"Collection {collection!r} is being built or erased from by somebody else. Try again when "
        "that has ended.",
        retry_after_seconds=5.0,
    )
