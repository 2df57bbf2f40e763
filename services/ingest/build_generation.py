"""BuildGeneration: a live generation behind the serving one, filled from stored messages."""

from __future__ import annotations

from services.ingest.audit import AuditEvent, record_audit
from services.ingest.chunkers import newest
from services.ingest.generations import (
    Generation,
    NewGeneration,
    create_generation,
    following,
    in_state,
    read_live_generations,
    set_filled,
)
from services.ingest.resources import Resources
from services.ingest.thread_index import Scope, Written, index_threads, settle
from services.ingest.workspaces import Workspace, changing, read_workspace
from services.runtime import db, sql

THREADS_AT_ONCE = 200

_STATEMENTS = sql.load("services.ingest", "messages.sql")


async def build_generation(
    resources: Resources, workspace_id: str, embedder: str, actor: str = ""
) -> tuple[Workspace, Generation]:
    """Begin a generation with an embedder and the newest chunker, or find it half built.

    Its rows are for ``fill_generation``. Raises CallError WORKSPACE_NOT_FOUND, INVALID_ARGUMENT or
    EMBEDDER_UNAVAILABLE.
    """
    name = embedder or resources.embedders.default_name()
    identity = resources.embedders.by_name(name).identity
    async with changing(resources.pool, workspace_id) as connection:
        workspace = await read_workspace(connection, workspace_id)
        wanted = (identity.fingerprint, newest(resources.chunkers))
        found = await _building(connection, workspace_id, wanted)
        if found is None:
            serving = in_state(await read_live_generations(connection, workspace_id), "active")
            new = NewGeneration(
                workspace_id,
                resources.new_generation_id(),
                workspace.source,
                identity,
                chunker_version=newest(resources.chunkers),
                parent_generation_id=serving.generation_id if serving else "",
            )
            await create_generation(connection, new)
            event = AuditEvent("generation_begun", actor, new.generation_id)
            await record_audit(connection, workspace_id, event)
            found = await _building(connection, workspace_id, wanted)
    assert found is not None
    return workspace, found


async def fill_generation(resources: Resources, workspace: Workspace, generation_id: str) -> None:
    """Write the chunks that a generation lacks, some threads a transaction.

    Chunks that are right already stay, so it can be stopped and repeated at any time. Ends early
    when the generation is no longer one that follows messages.
    """
    after = ""
    while True:
        async with changing(resources.pool, workspace.workspace_id) as connection:
            found = await following(connection, workspace.workspace_id)
            filled = [
                generation for generation in found if generation.generation_id == generation_id
            ]
            roots = await _next_threads(connection, workspace.workspace_id, after)
            if not filled:
                return
            if not roots:
                await set_filled(connection, workspace.workspace_id, generation_id)
                return
            scope = Scope(
                connection,
                workspace.workspace_id,
                workspace.source,
                filled,
                resources.encoder,
                resources.chunkers,
            )
            written = Written()
            await index_threads(scope, roots, written)
            await settle(scope, written)
        after = roots[-1]


async def _building(
    connection: db.Connection, workspace_id: str, wanted: tuple[str, str]
) -> Generation | None:
    """The one that is being built with an embedder (by fingerprint) and a chunker (by version)."""
    generations = await read_live_generations(connection, workspace_id)
    return next(
        (
            generation
            for generation in generations
            if generation.state == "building"
            and (generation.embedder_fingerprint, generation.chunker_version) == wanted
        ),
        None,
    )


async def _next_threads(connection: db.Connection, workspace_id: str, after: str) -> list[str]:
    parameters = {"workspace_id": workspace_id, "after": after, "limit": THREADS_AT_ONCE}
    rows = await db.fetch_all(connection, _STATEMENTS["next_threads"], parameters)
    return [row[0] for row in rows]
