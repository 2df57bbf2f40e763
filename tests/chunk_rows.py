"""Rows of a generation for tests of the embedding lane, written and read as the owner."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

import numpy as np
import psycopg
from psycopg.sql import SQL, Identifier

from services.embedding.identity import EmbedderIdentity, Vector

WORKSPACE = "beacon"


def text_sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


class ChunkRows:
    """One database's rows. Every method is one committed transaction."""

    def __init__(self, url: str) -> None:
        self._url = url

    def add_generation(
        self, identity: EmbedderIdentity, generation_id: str, workspace_id: str = WORKSPACE
    ) -> None:
        with psycopg.connect(self._url) as connection:
            connection.execute(
                "INSERT INTO workspaces (workspace_id, source) VALUES (%s, 'synthetic')"
                " ON CONFLICT DO NOTHING",
                (workspace_id,),
            )
            connection.execute(
                "INSERT INTO embedders (fingerprint, name, provider, model, revision, width)"
                " VALUES (%s, %s, %s, %s, %s, %s) ON CONFLICT DO NOTHING",
                (
                    identity.fingerprint,
                    identity.name,
                    identity.provider,
                    identity.model,
                    identity.revision,
                    identity.width,
                ),
            )
            connection.execute(
                "INSERT INTO generations (workspace_id, generation_id, source, chunker_version,"
                " embedder_fingerprint, width) VALUES (%s, %s, 'synthetic', '1', %s, %s)",
                (workspace_id, generation_id, identity.fingerprint, identity.width),
            )

    def add_chunks(
        self,
        width: int,
        generation_id: str,
        texts: Mapping[str, str],
        workspace_id: str = WORKSPACE,
    ) -> None:
        """Chunks by id, without vectors."""
        with psycopg.connect(self._url) as connection:
            for chunk_id, text in texts.items():
                key = (workspace_id, generation_id, chunk_id)
                connection.execute(
                    "INSERT INTO chunks (workspace_id, generation_id, chunk_id, channel_id,"
                    " thread_root_id, kind, text, text_sha256, token_count)"
                    " VALUES (%s, %s, %s, 'ops', 'r', 'message', %s, %s, 1)",
                    (*key, text, text_sha256(text)),
                )
                connection.execute(
                    SQL(
                        "INSERT INTO {} (workspace_id, generation_id, chunk_id, channel_id,"
                        " author_ids, posted_from, posted_until)"
                        " VALUES (%s, %s, %s, 'ops', '{{}}', now(), now())"
                    ).format(_vectors(width)),
                    key,
                )

    def change_text(self, width: int, generation_id: str, chunk_id: str, text: str) -> None:
        """What an edit does: the new text, and no vector."""
        with psycopg.connect(self._url) as connection:
            change_text(connection, (width, generation_id, chunk_id), text)

    def vectors(self, width: int, generation_id: str) -> dict[str, Vector | None]:
        """The vector of each chunk."""
        rows = self._rows(width, generation_id, "embedding::text")
        return {key: None if v is None else _parsed(v) for key, v in rows.items()}

    def skipped(self, width: int, generation_id: str) -> dict[str, str]:
        """Reasons of the chunks that have no vector and never will."""
        return {
            chunk_id: reason
            for chunk_id, reason in self._rows(width, generation_id, "skipped").items()
            if reason is not None
        }

    def cached_texts(self, texts: Sequence[str]) -> set[str]:
        """Those of the texts whose vector is in the cache."""
        with psycopg.connect(self._url) as connection:
            rows = connection.execute("SELECT text_sha256 FROM embedding_cache").fetchall()
        return {text for text in texts if (text_sha256(text),) in rows}

    def put_in_cache(self, identity: EmbedderIdentity, text: str, vector: Vector) -> None:
        with psycopg.connect(self._url) as connection:
            connection.execute(
                "INSERT INTO embedding_cache VALUES (%s, %s, %s, %s)",
                (
                    WORKSPACE,
                    identity.fingerprint,
                    text_sha256(text),
                    vector.astype("<f4").tobytes(),
                ),
            )

    def _rows(self, width: int, generation_id: str, column: str) -> dict[str, str | None]:
        expressions = {"embedding::text": SQL("embedding::text"), "skipped": SQL("skipped")}
        query = SQL("SELECT chunk_id, {} FROM {} WHERE generation_id = %s").format(
            expressions[column], _vectors(width)
        )
        with psycopg.connect(self._url) as connection:
            return dict(connection.execute(query, (generation_id,)).fetchall())


def change_text(
    connection: psycopg.Connection[tuple[object, ...]], chunk: tuple[int, str, str], text: str
) -> None:
    """An edit inside the caller's transaction. ``chunk`` is (width, generation_id, chunk_id)."""
    width, *key = chunk
    connection.execute(
        "UPDATE chunks SET text = %s, text_sha256 = %s WHERE generation_id = %s AND chunk_id = %s",
        (text, text_sha256(text), *key),
    )
    connection.execute(
        SQL("UPDATE {} SET embedding = NULL WHERE generation_id = %s AND chunk_id = %s").format(
            _vectors(width)
        ),
        key,
    )


def _vectors(width: int) -> Identifier:
    return Identifier(f"vectors_{width}")


def _parsed(text: str) -> Vector:
    return np.array(text.strip("[]").split(","), np.float32)
