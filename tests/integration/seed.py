"""Rows for the tests of retrieve, written with plain SQL as the database's owner."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import psycopg

from services.corpus import content_sha256
from services.embedding import local, openai_embedder
from services.embedding.identity import EmbedderIdentity

BEGIN = datetime(2026, 9, 1, 9, 0, tzinfo=UTC)


def at(minute: int) -> datetime:
    """An instant so many minutes after the first of September 2026, 09:00 UTC."""
    return BEGIN + timedelta(minutes=minute)


def direction(*components: float, width: int = 384) -> str:
    """A unit vector that begins with the components, as PostgreSQL reads it."""
    values = np.zeros(width)
    values[: len(components)] = components
    return "[" + ",".join(map(str, values / np.linalg.norm(values))) + "]"


@dataclass
class Seed:
    """One workspace with one generation to fill."""

    connection: psycopg.Connection[Any]
    workspace_id: str = "T1"
    source: str = "slack"
    generation_id: str = "G1"
    identity: EmbedderIdentity = local.IDENTITY

    def workspace(self, *, domain: str = "acme") -> Seed:
        """The workspace itself and its active generation."""
        self._run(
            "INSERT INTO workspaces (workspace_id, source, domain) VALUES (%s, %s, %s)",
            self.workspace_id,
            self.source,
            domain,
        )
        self.generation(self.generation_id)
        return self

    def generation(
        self,
        generation_id: str,
        state: str = "active",
        superseded_minutes_ago: float | None = None,
    ) -> None:
        """A generation of the seed's embedder."""
        who = self.identity
        self._run(
            "INSERT INTO embedders (fingerprint, name, provider, model, revision, width) "
            "VALUES (%s, %s, %s, %s, %s, %s) ON CONFLICT DO NOTHING",
            who.fingerprint,
            who.name,
            who.provider,
            who.model,
            who.revision,
            who.width,
        )
        self._run(
            "INSERT INTO generations (workspace_id, generation_id, source, state, "
            "chunker_version, embedder_fingerprint, width, promoted_at, superseded_at) "
            "VALUES (%s, %s, %s, %s, '1', %s, %s, now(), now() - make_interval(secs => 60 * %s))",
            self.workspace_id,
            generation_id,
            self.source,
            state,
            who.fingerprint,
            who.width,
            superseded_minutes_ago,
        )

    def channel(self, channel_id: str, name: str, kind: str = "public") -> None:
        """A channel."""
        self._run(
            "INSERT INTO channels (workspace_id, channel_id, name, kind) VALUES (%s, %s, %s, %s)",
            self.workspace_id,
            channel_id,
            name,
            kind,
        )

    def person(
        self, person_id: str, display_name: str, real_name: str = "", handle: str = ""
    ) -> None:
        """A person of the directory."""
        self._run(
            "INSERT INTO people (workspace_id, person_id, display_name, real_name, handle) "
            "VALUES (%s, %s, %s, %s, %s)",
            self.workspace_id,
            person_id,
            display_name,
            real_name,
            handle,
        )

    def message(
        self,
        message_id: str,
        text: str,
        *,
        channel_id: str = "C1",
        author_id: str = "U1",
        author_name: str = "",
        posted_at: datetime = BEGIN,
        root_id: str = "",
        vector: str | None = None,
        indexed: bool = True,
    ) -> str:
        """A message and, unless ``indexed`` is off, its own chunk. Returns the message's id."""
        self._run(
            "INSERT INTO messages (workspace_id, message_id, channel_id, author_id, author_name, "
            "posted_at, thread_root_id, text, content_sha256) "
            "VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s)",
            self.workspace_id,
            message_id,
            channel_id,
            author_id,
            author_name,
            posted_at,
            root_id or message_id,
            text,
            content_sha256(text, author_id, None),
        )
        if indexed:
            self.chunk("message", [message_id], text, vector=vector)
        return message_id

    def chunk(
        self, kind: str, message_ids: Sequence[str], text: str, *, vector: str | None = None
    ) -> str:
        """A chunk of stored messages in both index tables. Returns its id."""
        chunk_id = hashlib.sha256("\n".join((kind, *message_ids)).encode()).hexdigest()
        self._run(
            "INSERT INTO chunks (workspace_id, generation_id, chunk_id, channel_id, "
            "thread_root_id, kind, text, text_sha256, token_count) "
            "SELECT workspace_id, %s, %s, channel_id, thread_root_id, %s, %s, %s, 1 "
            "FROM messages WHERE workspace_id = %s AND message_id = %s",
            self.generation_id,
            chunk_id,
            kind,
            text,
            hashlib.sha256(text.encode()).hexdigest(),
            self.workspace_id,
            message_ids[0],
        )
        for position, message_id in enumerate(message_ids):
            self._run(
                "INSERT INTO chunk_messages "
                "(workspace_id, generation_id, chunk_id, message_id, position) "
                "VALUES (%s, %s, %s, %s, %s)",
                self.workspace_id,
                self.generation_id,
                chunk_id,
                message_id,
                position,
            )
        span = (
            "SELECT m.workspace_id, c.generation_id, c.chunk_id, c.channel_id, "
            "array_agg(DISTINCT m.author_id), min(m.posted_at), max(m.posted_at) "
            "FROM chunks c JOIN chunk_messages cm USING (workspace_id, generation_id, chunk_id) "
            "JOIN messages m USING (workspace_id, message_id) WHERE c.chunk_id = %s "
            "AND c.workspace_id = %s AND c.generation_id = %s GROUP BY 1, 2, 3, 4"
        )
        where = (chunk_id, self.workspace_id, self.generation_id)
        self._run(
            "INSERT INTO chunk_terms SELECT s.*, to_tsvector('simple', %s) FROM ("
            + span
            + ") AS s",
            text,
            *where,
        )
        self._run(
            f"INSERT INTO vectors_{self.identity.width} SELECT s.*, %s::vector FROM ({span}) AS s",
            vector,
            *where,
        )
        return chunk_id

    def vector(self, chunk_id: str, vector: str) -> None:
        """Give a chunk its vector."""
        self._run(
            f"UPDATE vectors_{self.identity.width} SET embedding = %s::vector "
            "WHERE workspace_id = %s AND generation_id = %s AND chunk_id = %s",
            vector,
            self.workspace_id,
            self.generation_id,
            chunk_id,
        )

    async def embed(self, embedder: local.LocalEmbedder) -> None:
        """Fill every missing vector of the generation with the embedder's."""
        rows = self.connection.execute(
            "SELECT chunk_id, text FROM chunks WHERE workspace_id = %s AND generation_id = %s",
            (self.workspace_id, self.generation_id),
        ).fetchall()
        for (chunk_id, _), vector in zip(
            rows, await embedder.embed_passages([text for _, text in rows]), strict=True
        ):
            assert isinstance(vector, np.ndarray)
            self.vector(chunk_id, "[" + ",".join(map(str, vector.tolist())) + "]")

    def delete(self, message_id: str) -> None:
        """A tombstone alone: the message's rows are still there."""
        self._run(
            "INSERT INTO tombstones (workspace_id, message_id) VALUES (%s, %s)",
            self.workspace_id,
            message_id,
        )

    def _run(self, statement: str, *parameters: object) -> None:
        self.connection.execute(statement.encode(), parameters)


OPENAI_IDENTITY = openai_embedder.IDENTITY
