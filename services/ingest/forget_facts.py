"""Takes what erased documents declared out of the ledger: the one way in which it loses rows."""

from __future__ import annotations

from collections.abc import Sequence

from services.runtime import db, sql

_STATEMENTS = sql.load("services.ingest", "ledger.sql")


async def forget_facts(
    connection: db.Connection, workspace_id: str, collection: str, uris: Sequence[str]
) -> None:
    """Delete the documents' cards and the facts that nothing else backs."""
    given = {"workspace_id": workspace_id, "collection": collection, "uris": list(uris)}
    await connection.execute(_STATEMENTS["forget_fact_events"], given)
    await connection.execute(_STATEMENTS["forget_cards"], given)
