"""Writes one batch of read records: rows, tombstones and the chunks of every thread touched."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field

from services.ingest.directory import Directory
from services.ingest.records import DeletedMessage, IncomingMessage
from services.ingest.thread_index import Scope, Written, drop_chunks_of, index_threads, settle
from services.ingest.versions import Changes, Fate, Version, edit_order, resolve
from services.runtime import db, sql

_STATEMENTS = sql.load("services.ingest", "messages.sql")


@dataclass(frozen=True)
class Batch:
    """Records that were read.

    ``emptied`` are records of messages without any text left, by id with their order of edit: the
    text that may be stored for them is gone from the source.
    """

    messages: Sequence[IncomingMessage] = ()
    deletions: Sequence[DeletedMessage] = ()
    emptied: Mapping[str, tuple[int, int]] = field(default_factory=dict)


@dataclass(frozen=True)
class Stored:
    """What became of a batch: a fate a message, in order, and how many deletions were news."""

    fates: Sequence[Fate]
    deleted: int
    chunks_written: int


async def write_batch(scope: Scope, batch: Batch, directory: Directory) -> Stored:
    """Store a batch in the transaction of ``scope``, which must hold the workspace's lock."""
    written = Written()
    deleted = [deletion.message_id for deletion in batch.deletions]
    newly_deleted = await bury(scope.connection, scope.workspace_id, deleted)
    message_ids = [message.message_id for message in batch.messages]
    stored = await _read_stored(scope, [*message_ids, *batch.emptied])
    tombstones = await _read_tombstones(scope, message_ids)
    changes = resolve(batch.messages, stored, tombstones, directory)
    gone = {*deleted, *_still_emptied(batch.emptied, stored, changes)}
    roots = await drop_chunks_of(scope, {*gone, *(stored.keys() & changes.written)}, written)
    roots |= await remove_rows(scope, gone)
    await _save(scope, changes)
    roots |= {message.thread_root_id for message in batch.messages}
    roots |= {version.thread_root_id for version in stored.values()}
    roots |= {version.thread_root_id for version in changes.written.values()}
    await index_threads(scope, roots, written)
    await settle(scope, written)
    return Stored(changes.fates, len(newly_deleted), written.chunks)


async def bury(
    connection: db.Connection, workspace_id: str, message_ids: Collection[str]
) -> list[str]:
    """Leave tombstones; returns the ids that had none."""
    if not message_ids:
        return []
    parameters = {"workspace_id": workspace_id, "message_ids": sorted(set(message_ids))}
    rows = await db.fetch_all(connection, _STATEMENTS["bury"], parameters)
    return [row[0] for row in rows]


async def remove_rows(scope: Scope, message_ids: Collection[str]) -> set[str]:
    """Delete messages; returns the root ids of their threads."""
    if not message_ids:
        return set()
    rows = await db.fetch_all(
        scope.connection, _STATEMENTS["remove_messages"], _ids(scope, message_ids)
    )
    return {row[0] for row in rows}


def _still_emptied(
    emptied: Mapping[str, tuple[int, int]], stored: Mapping[str, Version], changes: Changes
) -> Iterable[str]:
    """Stored messages whose text went with an edit that is not older than the stored one."""
    return (
        message_id
        for message_id, order in emptied.items()
        if message_id in stored
        and message_id not in changes.written
        and order >= edit_order(stored[message_id].edited_ts, stored[message_id].edited_at)
    )


async def _read_stored(scope: Scope, message_ids: Collection[str]) -> dict[str, Version]:
    rows = await db.fetch_all(
        scope.connection, _STATEMENTS["read_stored"], _ids(scope, message_ids)
    )
    return {row[0]: Version(*row) for row in rows}


async def _read_tombstones(scope: Scope, message_ids: Collection[str]) -> set[str]:
    rows = await db.fetch_all(
        scope.connection, _STATEMENTS["read_tombstones"], _ids(scope, message_ids)
    )
    return {row[0] for row in rows}


async def _save(scope: Scope, changes: Changes) -> None:
    rows = [
        {"workspace_id": scope.workspace_id, "text": changes.texts[message_id], **asdict(version)}
        for message_id, version in changes.written.items()
    ]
    if rows:
        async with scope.connection.cursor() as cursor:
            await cursor.executemany(_STATEMENTS["save_message"], rows)


def _ids(scope: Scope, message_ids: Collection[str]) -> dict[str, object]:
    return {"workspace_id": scope.workspace_id, "message_ids": list(message_ids)}
