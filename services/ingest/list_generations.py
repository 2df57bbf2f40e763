"""ListGenerations: a workspace's generations with how complete they are."""

from __future__ import annotations

from services.ingest.generations import ChunkCounts, Generation, count_chunks, read_generations
from services.ingest.list_channels import readable_channels
from services.ingest.resources import Resources
from services.ingest.workspaces import read_workspace
from services.runtime import db
from services.runtime.callers import Caller


async def list_generations(
    resources: Resources, workspace_id: str, caller: Caller
) -> list[tuple[Generation, ChunkCounts]]:
    """Generations, newest first, with the chunks of what the caller may read.

    Those of a collection that the caller may not read do not exist for it.
    Raises CallError WORKSPACE_NOT_FOUND.
    """
    async with db.reading(resources.pool, workspace_id) as connection:
        await read_workspace(connection, workspace_id)
        channels = await readable_channels(connection, workspace_id, caller)
        channel_ids = [channel.channel_id for channel in channels]
        return [
            (generation, await count_chunks(connection, generation, channel_ids))
            for generation in await read_generations(connection, workspace_id)
            if not generation.is_sealed or caller.may_read_channel(generation.collection)
        ]


async def get_generation(
    resources: Resources, workspace_id: str, generation_id: str, caller: Caller
) -> tuple[Generation, ChunkCounts]:
    """One of them, which must exist."""
    found = await list_generations(resources, workspace_id, caller)
    return next(entry for entry in found if entry[0].generation_id == generation_id)
