"""Generations of a workspace: what is stored of them, and how a new one begins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from services.corpus import Source
from services.embedding.identity import EmbedderIdentity
from services.ingest.chunking import CHUNKER_VERSION
from services.runtime import db, sql

# Generations that hold rows and follow every message.
FOLLOWING = ("building", "validating", "ready", "active")

_STATEMENTS = sql.load("services.ingest", "generations.sql")


@dataclass(frozen=True)
class Generation:
    """One index of a workspace."""

    generation_id: str
    workspace_id: str
    source: Source
    state: str
    embedder_fingerprint: str
    embedder: str
    width: int
    chunker_version: str
    created_at: datetime
    promoted_at: datetime | None
    superseded_at: datetime | None
    failure_reason: str

    @property
    def key(self) -> dict[str, object]:
        """Parameters that name it in every statement."""
        return {"workspace_id": self.workspace_id, "generation_id": self.generation_id}


@dataclass(frozen=True)
class ChunkCounts:
    """Chunks of a generation, and those that wait for a vector."""

    chunks: int
    without_vector: int


@dataclass(frozen=True)
class Gaps:
    """What keeps a generation from serving; all zero when its rows are complete."""

    messages_without_chunk: int
    chunks_without_rows: int

    def __bool__(self) -> bool:
        return bool(self.messages_without_chunk or self.chunks_without_rows)


def new_generation_id(now: datetime, entropy: str) -> str:
    """``g-<UTC time>-<entropy>``: ids sort by age."""
    return f"g-{now.astimezone(UTC):%Y%m%d-%H%M%S}-{entropy}"


async def read_generations(connection: db.Connection, workspace_id: str) -> list[Generation]:
    """The workspace's live generations, newest first."""
    rows = await db.fetch_all(
        connection, _STATEMENTS["read_generations"], {"workspace_id": workspace_id}
    )
    return [Generation(row[0], row[1], Source(row[2]), *row[3:]) for row in rows]


async def following(connection: db.Connection, workspace_id: str) -> list[Generation]:
    """Generations that every write must reach."""
    found = await read_generations(connection, workspace_id)
    return [generation for generation in found if generation.state in FOLLOWING]


def in_state(generations: Sequence[Generation], state: str) -> Generation | None:
    """The newest generation in a state."""
    return next((found for found in generations if found.state == state), None)


async def create_generation(
    connection: db.Connection,
    workspace_id: str,
    source: Source,
    identity: EmbedderIdentity,
    generation_id: str,
) -> None:
    """Begin a live generation; its embedder is recorded for whoever embeds a question later."""
    await connection.execute(
        _STATEMENTS["record_embedder"],
        {
            "fingerprint": identity.fingerprint,
            "name": identity.name,
            "provider": identity.provider,
            "model": identity.model,
            "revision": identity.revision,
            "width": identity.width,
        },
    )
    await connection.execute(
        _STATEMENTS["create_generation"],
        {
            "workspace_id": workspace_id,
            "generation_id": generation_id,
            "source": source,
            "chunker_version": CHUNKER_VERSION,
            "fingerprint": identity.fingerprint,
            "width": identity.width,
        },
    )


async def count_chunks(
    connection: db.Connection, generation: Generation, channel_ids: Sequence[str] | None = None
) -> ChunkCounts:
    """Chunks of a generation, and how many of them wait for a vector; None counts all channels."""
    statement = _STATEMENTS.for_width("count_chunks", generation.width)
    channels = {"channel_ids": None if channel_ids is None else list(channel_ids)}
    row = await db.fetch_one(connection, statement, {**generation.key, **channels})
    return ChunkCounts(*row) if row else ChunkCounts(0, 0)


async def count_gaps(connection: db.Connection, generation: Generation) -> Gaps:
    """Messages that no message chunk shows, and chunks that miss a row in an index table."""
    statement = _STATEMENTS.for_width("count_gaps", generation.width)
    row = await db.fetch_one(connection, statement, generation.key)
    return Gaps(*row) if row else Gaps(0, 0)


async def refresh_statistics(pool: db.Pool, workspace_id: str) -> None:
    """Tell the planner what a bulk load changed; without it joins of fresh rows are quadratic.

    Before PostgreSQL 17 only an owner may; there the server skips it and autovacuum follows.
    """
    async with db.writing(pool, workspace_id) as connection:
        await connection.execute(_STATEMENTS["refresh_statistics"])


async def start_serving(connection: db.Connection, generation: Generation) -> list[str]:
    """Make a generation active; the active one becomes ready.

    Returns the generations retired by it: those that stopped serving over 30 minutes ago. Their
    rows are still to be cleared.
    """
    workspace = {"workspace_id": generation.workspace_id}
    retired = await db.fetch_all(connection, _STATEMENTS["retire_superseded"], workspace)
    await connection.execute(_STATEMENTS["supersede_active"], workspace)
    await connection.execute(_STATEMENTS["set_serving"], generation.key)
    return [row[0] for row in retired if row[0] != generation.generation_id]
