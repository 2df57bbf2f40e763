"""ResolvePin: the generation that a question is answered from, and whether it may be."""

from __future__ import annotations

from dataclasses import dataclass

import grpc

from recall.error.v1 import error_pb2
from services.corpus import QueryContext, Source
from services.runtime import db, sql
from services.runtime.errors import CallError, invalid

# How long a generation that stopped serving may still be searched, so that no question loses its
# pin on the way.
GRACE_MINUTES = 30

STATEMENTS = sql.load("services.retrieve", "generations.sql")


@dataclass(frozen=True)
class Generation:
    """A searchable generation and the embedder it was built with."""

    generation_id: str
    embedder_fingerprint: str
    width: int
    embedder_model: str


async def resolve_pin(pool: db.Pool, context: QueryContext) -> Generation:
    """The serving generation. Raises CallError as ``read_generation`` does."""
    async with db.reading(pool, context.workspace_id) as connection:
        return await read_generation(connection, context)


async def read_generation(
    connection: db.Connection,
    context: QueryContext,
    generation_id: str = "",
    *,
    may_be_unserved: bool = False,
) -> Generation:
    """The named generation while it serves and for 30 minutes after; without a name the serving.
    Each collection of documents has its own: without a name the context must hold one alone.

    With ``may_be_unserved`` also one that is validated, or ready to be promoted.

    Raises CallError NOT_FOUND (WORKSPACE_NOT_FOUND, GENERATION_NOT_FOUND), FAILED_PRECONDITION
    (NO_ACTIVE_GENERATION), INVALID_ARGUMENT (several collections).
    """
    parameters = {
        "channel_ids": list(context.channel_ids),
        "collection": _collection(context, generation_id),
        "workspace_id": context.workspace_id,
        "source": context.source.value,
        "generation_id": generation_id,
        "grace_minutes": GRACE_MINUTES,
        "may_be_unserved": may_be_unserved,
    }
    name = "pinned_generation" if generation_id else "serving_generation"
    row = await db.fetch_one(connection, STATEMENTS[name], parameters)
    if row is not None:
        return Generation(*row)
    if await db.fetch_one(connection, STATEMENTS["workspace_exists"], parameters) is None:
        raise _no_workspace(context)
    raise _not_searchable(generation_id) if generation_id else _none_active(context)


def _collection(context: QueryContext, generation_id: str) -> str:
    if context.source is not Source.DOCUMENT or generation_id:
        return ""
    if len(context.channel_ids) > 1:
        raise invalid(
            "context.channel_ids",
            f"names {len(context.channel_ids)} collections; each has a generation of its own. "
            "Search one at a time",
        )
    return "".join(context.channel_ids)


def _no_workspace(context: QueryContext) -> CallError:
    return CallError(
        grpc.StatusCode.NOT_FOUND,
        error_pb2.ERROR_REASON_WORKSPACE_NOT_FOUND,
        f"There is no workspace {context.workspace_id!r}. Import into it, or name another.",
    )


def _not_searchable(generation_id: str) -> CallError:
    return CallError(
        grpc.StatusCode.NOT_FOUND,
        error_pb2.ERROR_REASON_GENERATION_NOT_FOUND,
        f"Generation {generation_id!r} does not serve this workspace and source, and did not in "
        f"the last {GRACE_MINUTES} minutes. Resolve the pin again.",
    )


def _none_active(context: QueryContext) -> CallError:
    return CallError(
        grpc.StatusCode.FAILED_PRECONDITION,
        error_pb2.ERROR_REASON_NO_ACTIVE_GENERATION,
        f"Workspace {context.workspace_id!r} has no active generation of {context.source.value} "
        "messages yet. Import some, or promote a generation that is ready.",
    )
