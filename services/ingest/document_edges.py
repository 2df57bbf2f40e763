"""Writes the edges that the documents of a generation declare."""

from __future__ import annotations

from services.ingest.document_links import Declared, resolve
from services.runtime import db, sql

_STATEMENTS = sql.load("services.ingest", "documents.sql")


async def write_edges(
    connection: db.Connection, key: dict[str, object]
) -> tuple[tuple[str, int, str], ...]:
    """Resolve every declared name and store what it means. Returns (uri, line, what is wrong)."""
    rows = await db.fetch_all(connection, _STATEMENTS["declared"], key)
    resolved = resolve([_declared(uri, path, relations) for uri, path, _, relations in rows])
    await connection.execute(
        _STATEMENTS["insert_supersessions"],
        {
            **key,
            "newer": [each.newer for each in resolved.replaces],
            "older": [each.older for each in resolved.replaces],
            "is_ambiguous": [each.is_ambiguous for each in resolved.replaces],
        },
    )
    await connection.execute(
        _STATEMENTS["insert_relations"],
        {
            **key,
            "uris": [each.uri for each in resolved.relations],
            "relations": [each.relation for each in resolved.relations],
            "targets": [each.target for each in resolved.relations],
            "confidences": [each.confidence for each in resolved.relations],
        },
    )
    return resolved.problems


def _declared(uri: str, path: str, stored: list[dict[str, object]]) -> Declared:
    relations = [
        (str(r["relation"]), str(r["target"]), float(str(r["confidence"])), int(str(r["line"])))
        for r in stored
    ]
    return Declared(
        uri,
        path,
        tuple(
            (target, line) for relation, target, _, line in relations if relation == "supersedes"
        ),
        tuple(each for each in relations if each[0] != "supersedes"),
    )
