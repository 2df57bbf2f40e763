"""ListGenerations: a workspace's live generations with how complete they are."""

from __future__ import annotations

from services.ingest.generations import ChunkCounts, Generation, count_chunks, read_generations
from services.ingest.resources import Resources
from services.ingest.workspaces import read_workspace
from services.runtime import db


async def list_generations(
    resources: Resources, workspace_id: str
) -> list[tuple[Generation, ChunkCounts]]:
    """Generations, newest first. Raises CallError WORKSPACE_NOT_FOUND."""
    async with db.reading(resources.pool, workspace_id) as connection:
        await read_workspace(connection, workspace_id)
        return [
            (generation, await count_chunks(connection, generation))
            for generation in await read_generations(connection, workspace_id)
        ]


async def get_generation(
    resources: Resources, workspace_id: str, generation_id: str
) -> tuple[Generation, ChunkCounts]:
    """One of them, which must exist."""
    found = await list_generations(resources, workspace_id)
    return next(entry for entry in found if entry[0].generation_id == generation_id)
