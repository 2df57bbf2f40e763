"""GetCoverage: how much of a workspace is stored and embedded."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from services.ingest.generations import (
    ChunkCounts,
    Generation,
    count_chunks,
    in_state,
    read_live_generations,
)
from services.ingest.history_coverage import (
    ChannelHistory,
    estimate_seconds_left,
    read_channel_histories,
)
from services.ingest.resources import Resources
from services.ingest.workspaces import Workspace, read_workspace
from services.runtime import db, sql
from services.runtime.callers import Caller

_GENERATIONS = sql.load("services.ingest", "generations.sql")
_MESSAGES = sql.load("services.ingest", "messages.sql")


@dataclass(frozen=True)
class ChannelCoverage:
    """Stored messages of one channel, and the instants of the oldest and the newest."""

    channel_id: str
    name: str
    messages: int
    oldest_at: datetime | None
    newest_at: datetime | None
    # None for a channel that was only imported.
    history: ChannelHistory | None


@dataclass(frozen=True)
class Coverage:
    """What is stored of a caller's channels. ``serving`` is None before the first import ends."""

    workspace: Workspace
    channels: Sequence[ChannelCoverage]
    serving: Generation | None
    counts: ChunkCounts
    embedding_job_state: str
    embedding_job_error: str
    # Until history and replies are read; None when nothing is left or nothing can be told.
    seconds_left: float | None


async def get_coverage(
    resources: Resources, workspace_id: str, caller: Caller, wanted: Collection[str] = ()
) -> Coverage:
    """One snapshot of what the caller may read, of the wanted channels only where some are.

    Raises CallError WORKSPACE_NOT_FOUND.
    """
    key = {"workspace_id": workspace_id}
    async with db.reading(resources.pool, workspace_id) as connection:
        workspace = await read_workspace(connection, workspace_id)
        rows = await db.fetch_all(connection, _MESSAGES["coverage"], key)
        histories = await read_channel_histories(connection, workspace_id)
        channels = [
            ChannelCoverage(row[0], row[1], row[2], row[3], row[4], histories.get(row[0]))
            for row in rows
            if caller.may_read_channel(row[0]) and (not wanted or row[0] in wanted)
        ]
        serving = in_state(await read_live_generations(connection, workspace_id), "active")
        counts = await _count(connection, serving, channels)
        job = await _embedding_job(connection, serving)
        seconds_left = await estimate_seconds_left(
            connection,
            workspace_id,
            resources.history_pace,
            histories,
            [channel.channel_id for channel in channels],
        )
    return Coverage(workspace, channels, serving, counts, job[0], job[1], seconds_left)


async def _count(
    connection: db.Connection, serving: Generation | None, channels: Sequence[ChannelCoverage]
) -> ChunkCounts:
    if serving is None:
        return ChunkCounts(0, 0)
    return await count_chunks(connection, serving, [channel.channel_id for channel in channels])


async def _embedding_job(connection: db.Connection, serving: Generation | None) -> tuple[str, str]:
    """State and last error of the job that fills the serving generation's vectors."""
    if serving is None:
        return "", ""
    row = await db.fetch_one(connection, _GENERATIONS["read_embedding_job"], serving.key)
    return (row[0], row[1]) if row else ("", "")
