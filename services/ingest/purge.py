"""The job "purge": deletes everything of a workspace or of a channel, some rows a transaction.

It begins by deleting the jobs of what it purges, so that whoever runs one writes nothing more, and
ends with the report, which holds counts and no text. A killed purge goes on where it was: its
counts are saved with the rows they count. Of a channel the tombstones stay: they are ids, and they
keep deleted messages and documents from coming back with an old archive or manifest. Of a
workspace nothing stays.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from services.corpus import Source, encode_part, slack_message_id
from services.ingest.purge_labels import forget_labels_of
from services.ingest.purges import read_report
from services.ingest.queue import Job, still_holds
from services.ingest.resources import Resources
from services.ingest.seal import allow_erasure
from services.ingest.workspaces import Workspace, changing, read_workspace
from services.runtime import db, sql

ROWS_AT_ONCE = 1_000

_STATEMENTS = sql.load("services.ingest", "purge.sql")
_CHUNKS = sql.load("services.ingest", "chunks.sql")

# In an order in which nothing that is left shows what went before it.
_CHANNEL_TABLES = (
    "messages",
    "chunks",
    "thread_history",
    "channel_history",
    "deliveries",
    "feedback",
    "corrections",
    "source_pieces",
    "supersessions",
    "document_relations",
    "sources",
    "fact_events",
    "evidence_cards",
    "channel_members",
    "channels",
)
_WORKSPACE_TABLES = (
    *_CHANNEL_TABLES,
    "embedding_cache",
    "tombstones",
    "source_tombstones",
    "people",
)
# Small, and deleted in the last transaction: of a channel what was measured of its collection.
_LAST_OF_CHANNEL = ("calibration_replays", "calibrations", "label_sets", "generations")
_LAST_TABLES = (*_LAST_OF_CHANNEL, "audit_events", "pacing", "jobs", "workspace")


@dataclass
class Purge:
    """One purge under way. ``channel_id`` is empty for a whole workspace."""

    resources: Resources
    job: Job
    channel_id: str
    id_prefix: str
    counts: Counter[str] = field(default_factory=Counter)

    @property
    def parameters(self) -> dict[str, object]:
        """What the statements take."""
        return {
            "workspace_id": self.job.workspace_id,
            "job_id": self.job.job_id,
            "purge_id": self.job.payload["purge_id"],
            "channel_id": self.channel_id,
            "id_prefix": self.id_prefix,
            "limit": ROWS_AT_ONCE,
        }


async def handle_purge(resources: Resources, job: Job) -> None:
    """Delete until nothing is left, then finish the report."""
    purge = await _begin(resources, job)
    if purge is None:
        return
    for table in _CHANNEL_TABLES if purge.channel_id else _WORKSPACE_TABLES:
        while await _delete_some(purge, table):
            pass
    await _finish(purge)


async def _begin(resources: Resources, job: Job) -> Purge | None:
    """Stop the jobs of what is purged; None when the purge is finished or somebody else's."""
    async with changing(resources.pool, job.workspace_id) as connection:
        if not await still_holds(connection, job):
            return None
        report = await read_report(connection, job.workspace_id, job.payload["purge_id"])
        if report.finished_at is not None:
            return None
        workspace = await read_workspace(connection, job.workspace_id)
        channel_id = report.channel_id
        prefix = _id_prefix(workspace, channel_id) if channel_id else ""
        purge = Purge(resources, job, channel_id, prefix, Counter(report.deleted))
        name = "stop_jobs_of_channel" if channel_id else "stop_jobs_of_workspace"
        await _run(connection, purge, "jobs", name)
        await _save(connection, purge)
    return purge


def _id_prefix(workspace: Workspace, channel_id: str) -> str:
    """What the ids of a channel's messages, or of a collection's pieces, begin with."""
    if workspace.source is Source.SLACK:
        return slack_message_id(workspace.team_id, channel_id, "")
    return f"{workspace.source}:{encode_part(channel_id)}:"


async def _delete_some(purge: Purge, table: str) -> bool:
    """Delete the next rows of a table; False when there are none, or the claim is lost."""
    async with changing(purge.resources.pool, purge.job.workspace_id) as connection:
        if not await still_holds(connection, purge.job):
            return False
        await allow_erasure(connection)
        if table == "chunks":
            deleted = await _delete_chunks(connection, purge)
        else:
            deleted = await _run(connection, purge, table, f"delete_{table}")
        if deleted:
            await _save(connection, purge)
    return deleted == ROWS_AT_ONCE


async def _delete_chunks(connection: db.Connection, purge: Purge) -> int:
    """Chunks with what hangs on them, each counted, and vectors of texts that no chunk has now."""
    rows = await db.fetch_all(connection, _STATEMENTS["some_chunks"], purge.parameters)
    chosen = {
        "generation_ids": [row[0] for row in rows],
        "chunk_ids": [row[1] for row in rows],
        "text_sha256s": sorted({row[2] for row in rows}),
    }
    for width in sql.WIDTHS:
        statement = _STATEMENTS.for_width("delete_vectors", width)
        await _count(connection, purge, f"vectors_{width}", statement, chosen)
    for table in ("chunk_terms", "chunk_messages", "chunks"):
        await _count(connection, purge, table, _STATEMENTS[f"delete_{table}"], chosen)
    forget = _CHUNKS["forget_unused_vectors"]
    await _count(connection, purge, "embedding_cache", forget, chosen)
    return len(rows)


async def _finish(purge: Purge) -> None:
    """The last rows and the report, in one transaction."""
    async with changing(purge.resources.pool, purge.job.workspace_id) as connection:
        if not await still_holds(connection, purge.job):
            return
        await allow_erasure(connection)
        if purge.channel_id:
            await forget_labels_of(connection, purge.job.workspace_id, purge.id_prefix)
        for table in _LAST_OF_CHANNEL if purge.channel_id else _LAST_TABLES:
            await _run(connection, purge, table, f"delete_{table}")
        await _save(connection, purge)
        name = "finish_report" if purge.channel_id else "finish_reports"
        await connection.execute(_STATEMENTS[name], purge.parameters)


async def _run(connection: db.Connection, purge: Purge, table: str, name: str) -> int:
    return await _count(connection, purge, table, _STATEMENTS[name], {})


async def _count(
    connection: db.Connection,
    purge: Purge,
    table: str,
    statement: bytes,
    chosen: Mapping[str, object],
) -> int:
    cursor = await connection.execute(statement, {**purge.parameters, **chosen})
    purge.counts[table] += cursor.rowcount
    return cursor.rowcount


async def _save(connection: db.Connection, purge: Purge) -> None:
    counts = {table: count for table, count in purge.counts.items() if count}
    await connection.execute(
        _STATEMENTS["save_counts"], {**purge.parameters, "deleted": json.dumps(counts)}
    )
