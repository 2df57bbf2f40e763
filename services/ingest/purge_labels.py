"""Takes the questions that a purged channel answers out of the labels of what stays."""

from __future__ import annotations

from services.ingest.labels import Label, canonical, digest, stored_labels
from services.runtime import db, sql

_STATEMENTS = sql.load("services.ingest", "purge_labels.sql")


async def forget_labels_of(connection: db.Connection, workspace_id: str, id_prefix: str) -> None:
    """Leave only labels that point at no message whose id begins with ``id_prefix``.

    Labels are never changed, so the rest becomes a set of its own. A published calibration goes
    over to it and is to be replayed at once; whether it still certifies is for the replay to say.
    """
    key = {"workspace_id": workspace_id, "id_prefix": id_prefix}
    for old_sha256, stored in await db.fetch_all(connection, _STATEMENTS["sets_pointing_at"], key):
        kept = canonical(_without(stored_labels(stored), id_prefix))
        change = {
            **key,
            "old_sha256": old_sha256,
            "labels": kept,
            "labels_sha256": digest(kept),
        }
        await connection.execute(_STATEMENTS["save_rest"], change)
        await connection.execute(_STATEMENTS["go_over_to_rest"], change)


def _without(labels: list[Label], id_prefix: str) -> list[Label]:
    return [
        label
        for label in labels
        if not any(relevant.startswith(id_prefix) for relevant in label.relevant_ids)
    ]
