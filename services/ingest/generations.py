"""Generations of a workspace: what is stored of them, how one begins, and how complete it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from services.corpus import Source
from services.embedding.identity import EmbedderIdentity
from services.ingest.chunking import CHUNKER_VERSION
from services.ingest.pipeline import Pipeline
from services.runtime import db, sql

# A chunk that came with the traffic may wait this long for its vector before the generation counts
# as being behind.
CATCH_UP_SECONDS = 60
# Live generations that hold rows and follow every message.
FOLLOWING = ("building", "validating", "ready", "active")

_STATEMENTS = sql.load("services.ingest", "generations.sql")


@dataclass(frozen=True)
class Generation:
    """One index of a workspace. ``collection`` is empty for chat.

    ``calibration_status`` is "certified", "uncertified" or "stale"; empty without a calibration.
    """

    generation_id: str
    workspace_id: str
    source: Source
    collection: str
    is_sealed: bool
    state: str
    embedder_fingerprint: str
    embedder: str
    width: int
    chunker_version: str
    created_at: datetime
    promoted_at: datetime | None
    superseded_at: datetime | None
    validated_at: datetime | None
    parent_generation_id: str
    pipeline_fingerprint: str
    manifest_digest: str
    corpus_fingerprint: str
    calibration_status: str
    failure_reason: str

    @property
    def key(self) -> dict[str, object]:
        """Parameters that name it in every statement."""
        return {"workspace_id": self.workspace_id, "generation_id": self.generation_id}


@dataclass(frozen=True)
class NewGeneration:
    """A generation to begin. A sealed one has a collection and the digest of its manifest."""

    workspace_id: str
    generation_id: str
    source: Source
    identity: EmbedderIdentity
    chunker_version: str = CHUNKER_VERSION
    collection: str = ""
    is_sealed: bool = False
    parent_generation_id: str = ""
    manifest_digest: str = ""

    @property
    def pipeline(self) -> Pipeline:
        """What defines it beside its content."""
        return Pipeline(self.identity.fingerprint, self.identity.width, self.chunker_version)


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


async def read_generations(
    connection: db.Connection, workspace_id: str, states: Sequence[str] | None = None
) -> list[Generation]:
    """The workspace's generations, live and sealed, newest first; None means in any state."""
    wanted = {"workspace_id": workspace_id, "states": None if states is None else list(states)}
    rows = await db.fetch_all(connection, _STATEMENTS["read_generations"], wanted)
    return [Generation(row[0], row[1], Source(row[2]), *row[3:]) for row in rows]


async def read_live_generations(connection: db.Connection, workspace_id: str) -> list[Generation]:
    """The generations of the workspace's messages, newest first."""
    found = await read_generations(connection, workspace_id)
    return [generation for generation in found if not generation.is_sealed]


async def following(connection: db.Connection, workspace_id: str) -> list[Generation]:
    """Generations that every write of messages must reach."""
    found = await read_generations(connection, workspace_id, FOLLOWING)
    return [generation for generation in found if not generation.is_sealed]


def in_state(generations: Sequence[Generation], state: str) -> Generation | None:
    """The newest generation in a state."""
    return next((found for found in generations if found.state == state), None)


async def create_generation(connection: db.Connection, new: NewGeneration) -> None:
    """Begin a generation; its embedder is recorded for whoever embeds a question later."""
    identity = new.identity
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
            "workspace_id": new.workspace_id,
            "generation_id": new.generation_id,
            "source": new.source,
            "collection": new.collection,
            "kind": "sealed" if new.is_sealed else "live",
            "parent_generation_id": new.parent_generation_id,
            "pipeline_fingerprint": new.pipeline.fingerprint,
            "text_search": new.pipeline.text_search,
            "profile": new.pipeline.profile,
            "manifest_digest": new.manifest_digest,
            "chunker_version": new.chunker_version,
            "fingerprint": identity.fingerprint,
            "width": identity.width,
        },
    )


async def set_filled(connection: db.Connection, workspace_id: str, generation_id: str) -> None:
    """The bulk of a live generation is written; what comes now comes with the traffic."""
    key = {"workspace_id": workspace_id, "generation_id": generation_id}
    await connection.execute(_STATEMENTS["set_filled"], key)


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


async def count_behind(connection: db.Connection, generation: Generation) -> int:
    """Chunks that should have a vector by now.

    All that have none, but for those that came with the traffic of the last 60 seconds: a live
    generation never stands still, and a chunk without a vector is found by its words.
    """
    statement = _STATEMENTS.for_width("count_behind", generation.width)
    patience = {"catch_up_seconds": CATCH_UP_SECONDS}
    row = await db.fetch_one(connection, statement, {**generation.key, **patience})
    return row[0] if row else 0


async def refresh_statistics(pool: db.Pool, workspace_id: str) -> None:
    """Tell the planner what a bulk load changed; without it joins of fresh rows are quadratic.

    Before PostgreSQL 17 only an owner may; there the server skips it and autovacuum follows.
    """
    async with db.writing(pool, workspace_id) as connection:
        await connection.execute(_STATEMENTS["refresh_statistics"])
