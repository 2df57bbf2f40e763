"""What the database holds, as its owner sees it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import psycopg

from tests.faults.stage import Stage

# Reading history goes on for ever, at its own pace.
_UNFINISHED = """
SELECT kind, count(*) FROM jobs
WHERE state IN ('ready', 'running') AND kind <> 'backfill'
GROUP BY kind ORDER BY kind"""
_JOBS = """
SELECT jobs.kind, jobs.dedup_key, jobs.state, jobs.last_error, jobs.claim_number,
    coalesce(deliveries.state, ''), coalesce(deliveries.reason, '')
FROM jobs
LEFT JOIN deliveries USING (workspace_id, job_id)
WHERE jobs.workspace_id = %s"""
_MESSAGES = """
SELECT messages.message_id, messages.text, count(chunks.chunk_id)
FROM messages
LEFT JOIN chunk_messages AS part USING (workspace_id, message_id)
LEFT JOIN chunks
    ON chunks.workspace_id = part.workspace_id
    AND chunks.generation_id = part.generation_id
    AND chunks.chunk_id = part.chunk_id
    AND chunks.kind = 'message'
WHERE messages.workspace_id = %s
GROUP BY messages.message_id, messages.text"""
_STRAYS = {
    "chunks of messages that are gone": """
        SELECT count(*) FROM chunk_messages AS part
        WHERE NOT EXISTS (
            SELECT FROM messages
            WHERE messages.workspace_id = part.workspace_id
                AND messages.message_id = part.message_id
        )""",
    "vectors of chunks that are gone": """
        SELECT count(*) FROM vectors_384 AS vector
        WHERE NOT EXISTS (
            SELECT FROM chunks
            WHERE chunks.workspace_id = vector.workspace_id
                AND chunks.generation_id = vector.generation_id
                AND chunks.chunk_id = vector.chunk_id
        )""",
    "cached vectors of texts that are gone": """
        SELECT count(*) FROM embedding_cache AS cached
        WHERE NOT EXISTS (
            SELECT FROM chunks
            WHERE chunks.workspace_id = cached.workspace_id
                AND chunks.text_sha256 = cached.text_sha256
        )""",
    "chunks without a vector": "SELECT count(*) FROM vectors_384 WHERE embedding IS NULL",
}
_TABLES = "SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1"


@dataclass(frozen=True)
class JobRow:
    """A job with its delivery, whose state is empty when nothing was to be delivered."""

    kind: str
    dedup_key: str
    state: str
    last_error: str
    claims: int
    delivery: str
    reason: str


@dataclass(frozen=True)
class StoredRow:
    """A message and how many chunks of its own it has."""

    text: str
    chunks: int


@dataclass(frozen=True)
class Rows:
    """Everything that the checks look at. ``dump`` holds every row of every table as text."""

    jobs: list[JobRow]
    messages: Mapping[str, StoredRow]
    strays: Mapping[str, int]
    dump: Mapping[str, str]


def unfinished(stage: Stage) -> dict[str, int]:
    """Jobs that wait or run, by kind."""
    with psycopg.connect(stage.database_url()) as connection:
        return {kind: count for kind, count in _all(connection, _UNFINISHED)}


def read_rows(stage: Stage) -> Rows:
    """One look at everything."""
    with psycopg.connect(stage.database_url()) as connection:
        found = _all(connection, _MESSAGES, stage.team_id)
        return Rows(
            jobs=[JobRow(*row) for row in _all(connection, _JOBS, stage.team_id)],
            messages={row[0]: StoredRow(*row[1:]) for row in found},
            strays={what: _all(connection, query)[0][0] for what, query in _STRAYS.items()},
            dump={table: _dump(connection, table) for (table,) in _all(connection, _TABLES)},
        )


def _dump(connection: psycopg.Connection, table: str) -> str:
    return "\n".join(row[0] for row in _all(connection, f'SELECT x::text FROM "{table}" AS x'))


def _all(connection: psycopg.Connection, statement: str, *parameters: str) -> list[tuple[Any, ...]]:
    return connection.execute(statement.encode(), parameters).fetchall()
