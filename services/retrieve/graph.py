"""One hop over authored relations: the documents next to given ones."""

from __future__ import annotations

from collections.abc import Sequence

from services.retrieve.arms import Query, parameters_of
from services.retrieve.fusion import FusedMessage
from services.retrieve.resolve_pin import Generation
from services.retrieve.scope import Scope
from services.runtime import db, sql
from services.runtime.errors import invalid

MOST_SEEDS = 64
# Nodes that one expansion looks at.
MOST_NEIGHBOURS = 32

_STATEMENTS = sql.load("services.retrieve", "graph.sql")


async def neighbours(
    connection: db.Connection,
    generation: Generation,
    scope: Scope,
    query: Query,
    seeds: Sequence[str],
) -> list[FusedMessage]:
    """Of each readable neighbour the piece nearest to the question, the most confident relations
    first. No arm raised them, so their scores are 0. Raises CallError INVALID_ARGUMENT."""
    if len(seeds) > MOST_SEEDS:
        raise invalid("source_uris", f"at most {MOST_SEEDS} documents at once")
    rows = await db.fetch_all(
        connection,
        _STATEMENTS.for_width("neighbours", generation.width),
        parameters_of(generation, scope, query) | {"seeds": list(seeds), "limit": MOST_NEIGHBOURS},
    )
    return [FusedMessage(row[0], ()) for row in rows]
