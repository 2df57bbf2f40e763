"""ValidateGeneration: reads a generation back; ready once both arms find a known chunk of it.

Two calls: the first reads the rows and names a chunk to search for; the second brings what the
search found. What serves already is checked and told about, its state stays.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from services.ingest.audit import AuditEvent, record_audit
from services.ingest.fail_generation import fail_generation
from services.ingest.generations import Generation
from services.ingest.promote_generation import require_complete
from services.ingest.read_back import (
    Reading,
    SmokeSearch,
    choose_smoke_search,
    is_searchable,
    read_back,
    smoke_faults,
    waiting_vectors,
)
from services.ingest.resources import Resources
from services.ingest.serving import not_ready, read_one
from services.ingest.workspaces import changing, read_workspace
from services.runtime import db, sql

_STATEMENTS = sql.load("services.ingest", "lifecycle.sql")


@dataclass(frozen=True)
class Validation:
    """Which generation to check, who asks, and what a search for the wanted chunk found."""

    workspace_id: str
    generation_id: str
    actor: str = ""
    smoke_search: SmokeSearch | None = None


@dataclass(frozen=True)
class Checked:
    """What was read and is wrong; ``wanted`` is a chunk to search for before it is ready."""

    reading: Reading
    wanted: SmokeSearch | None = None

    @property
    def failed(self) -> bool:
        """Whether anything is wrong."""
        return bool(self.reading.faults)


async def validate_generation(resources: Resources, validation: Validation) -> Checked:
    """One of the two calls. Faults make a generation that does not serve fail.

    Raises CallError WORKSPACE_NOT_FOUND, GENERATION_NOT_FOUND, or GENERATION_NOT_READY while
    chunks or vectors are missing, or when it ended.
    """
    generation = await _begin(resources, validation)
    async with db.reading(resources.pool, validation.workspace_id) as connection:
        reading = await read_back(connection, generation)
        searched = await _still_true(connection, generation, validation.smoke_search)
        wanted = None if searched else await choose_smoke_search(connection, generation)
    if searched is not None:
        faults = (*reading.faults, *smoke_faults(searched))
        reading = Reading(reading.sources, reading.chunks, faults)
    checked = Checked(reading, None if reading.faults else wanted)
    if checked.wanted is None and generation.state != "active":
        await _end(resources, validation, checked)
    return checked


async def _begin(resources: Resources, validation: Validation) -> Generation:
    """Put a complete generation under validation; from here on a sealed one does not change."""
    async with changing(resources.pool, validation.workspace_id) as connection:
        await read_workspace(connection, validation.workspace_id)
        generation = await read_one(connection, validation.workspace_id, validation.generation_id)
        if generation.state in ("retired", "failed"):
            raise not_ready(generation, f"it is {generation.state}. Build a new one.")
        if generation.state == "building":
            await connection.execute(_STATEMENTS["set_validating"], generation.key)
        await require_complete(connection, generation)
        waiting = await waiting_vectors(connection, generation) if generation.is_sealed else 0
        if waiting:
            raise not_ready(
                generation,
                f"{waiting} chunks have no vector yet. Wait for the embedding worker; "
                "`recall generations list` shows how far it is.",
            )
    return generation


async def _still_true(
    connection: db.Connection, generation: Generation, given: SmokeSearch | None
) -> SmokeSearch | None:
    """The search, unless its chunk went or changed with the traffic meanwhile."""
    if given is None or not await is_searchable(connection, generation, given):
        return None
    return given


async def _end(resources: Resources, validation: Validation, checked: Checked) -> None:
    reading = checked.reading
    key = {
        "workspace_id": validation.workspace_id,
        "generation_id": validation.generation_id,
    }
    summary: dict[str, object] = {"sources": reading.sources, "chunks": reading.chunks}
    async with changing(resources.pool, validation.workspace_id) as connection:
        generation = await read_one(connection, validation.workspace_id, validation.generation_id)
        if generation.state not in ("validating", "ready"):
            return
        if checked.failed:
            reason = " ".join(reading.faults)
            await fail_generation(
                connection,
                validation.workspace_id,
                validation.generation_id,
                reason,
                validation.actor,
            )
            return
        await connection.execute(
            _STATEMENTS["set_ready"], {**key, "validation": json.dumps(summary)}
        )
        event = AuditEvent(
            "generation_validated", validation.actor, validation.generation_id, summary
        )
        await record_audit(connection, validation.workspace_id, event)
