"""What a sealed generation holds is fixed from its validation on; only an erasure goes through."""

from __future__ import annotations

from collections.abc import AsyncIterator

import psycopg
import pytest

from services.ingest.clear_generation import clear_generation
from services.ingest.resources import Resources
from services.ingest.seal import allow_erasure
from services.runtime import db
from tests.integration.ingest_fixtures import Rows

REFUSED = psycopg.errors.ObjectNotInPrerequisiteState
KEY = "workspace_id, generation_id"
FILLED = {
    "chunks": f"({KEY}, chunk_id, channel_id, thread_root_id, kind, text, text_sha256, "
    "token_count) VALUES ('W', 'G', %s, 'handbook', 'm', 'message', 't', 's', 1)",
    "chunk_messages": f"({KEY}, chunk_id, message_id, position) VALUES ('W', 'G', %s, 'm', 1)",
    "chunk_terms": f"({KEY}, chunk_id, channel_id, author_ids, posted_from, posted_until, terms) "
    "VALUES ('W', 'G', %s, 'handbook', '{}', now(), now(), '')",
    "vectors_384": f"({KEY}, chunk_id, channel_id, author_ids, posted_from, posted_until) "
    "VALUES ('W', 'G', %s, 'handbook', '{}', now(), now())",
    "vectors_1536": f"({KEY}, chunk_id, channel_id, author_ids, posted_from, posted_until) "
    "VALUES ('W', 'G', %s, 'handbook', '{}', now(), now())",
    "sources": f"({KEY}, source_uri, channel_id, path, version_id, media_type, size, sha256, "
    "first_indexed_at) VALUES ('W', 'G', %s, 'handbook', 'p', '1', 'text/plain', 1, 's', now())",
    "source_pieces": f"({KEY}, message_id, source_uri, ordinal, channel_id, text, content_sha256) "
    "VALUES ('W', 'G', %s, 'u', 0, 'handbook', 't', 's')",
    "supersessions": f"({KEY}, source_uri, superseded_uri, asserted_at) "
    "VALUES ('W', 'G', 'u', %s, now())",
    "document_relations": f"({KEY}, source_uri, relation, target_uri) "
    "VALUES ('W', 'G', 'u', 'supports', %s)",
}
OF_CHUNKS = ("chunk_messages", "chunk_terms", "vectors_384", "vectors_1536")


@pytest.fixture
async def writing(rows: Rows, resources: Resources) -> AsyncIterator[db.Connection]:
    """A transaction of ingest's role in workspace W, with a sealed generation G being built."""
    rows.execute("INSERT INTO workspaces (workspace_id, source) VALUES ('W', 'document')")
    rows.execute("INSERT INTO embedders VALUES ('f', 'local', 'local', 'm', 'r', 384)")
    rows.execute(
        "INSERT INTO generations (workspace_id, generation_id, source, collection, kind, "
        "chunker_version, embedder_fingerprint, width) "
        "VALUES ('W', 'G', 'document', 'handbook', 'sealed', '1', 'f', 384)"
    )
    for table, key in (("chunks", "c"), ("chunks", "d"), ("sources", "u")):
        rows.execute(f"INSERT INTO {table} {FILLED[table]}", key)
    for table in FILLED.keys() - {"chunks", "sources"}:
        rows.execute(f"INSERT INTO {table} {FILLED[table]}", "c")
    async with db.writing(resources.pool, "W") as connection:
        yield connection


def become(rows: Rows, state: str) -> None:
    rows.execute(
        "UPDATE generations SET state = %s, promoted_at = now(), failure_reason = %s",
        state,
        "broken" if state == "failed" else "",
    )


async def attempt(connection: db.Connection, statement: str, *values: str) -> bool:
    """Whether a statement goes through; what it did is undone."""
    try:
        async with connection.transaction(force_rollback=True):
            await connection.execute(statement.encode(), values)
    except REFUSED:
        return False
    return True


async def changes(connection: db.Connection, table: str) -> dict[str, bool]:
    """Which of the three kinds of change goes through."""
    key = "d" if table in OF_CHUNKS else "another"
    return {
        "INSERT": await attempt(connection, f"INSERT INTO {table} {FILLED[table]}", key),
        "UPDATE": await attempt(connection, f"UPDATE {table} SET workspace_id = workspace_id"),
        "DELETE": await attempt(connection, f"DELETE FROM {table}"),
    }


@pytest.mark.parametrize("table", FILLED)
async def test_every_table_is_open_while_it_is_built_and_closed_from_validation_on(
    writing: db.Connection, rows: Rows, table: str
) -> None:
    everything = {"INSERT": True, "UPDATE": True, "DELETE": True}
    assert await changes(writing, table) == everything
    for state in ("validating", "ready", "active"):
        become(rows, state)
        assert await changes(writing, table) == dict.fromkeys(everything, False), state
    for state in ("retired", "failed"):
        become(rows, state)
        assert await changes(writing, table) == {"INSERT": False, "UPDATE": False, "DELETE": True}


async def test_an_erasure_deletes_in_its_own_transaction_and_in_no_later_one(
    writing: db.Connection, rows: Rows, resources: Resources
) -> None:
    become(rows, "active")
    async with db.writing(resources.pool, "W") as connection:
        await allow_erasure(connection)
        await connection.execute(b"DELETE FROM sources")
        assert not await attempt(connection, f"INSERT INTO chunks {FILLED['chunks']}", "more")
    assert rows.all("SELECT 1 FROM sources") == []
    async with resources.pool.connection() as connection:
        setting = await connection.execute(b"SELECT current_setting('recall.erasure', true)")
        assert (await setting.fetchone() or [""])[0] in ("", None)
    assert not await attempt(writing, "DELETE FROM chunks")


async def test_a_live_generation_of_the_same_workspace_is_never_touched_by_the_seal(
    writing: db.Connection, rows: Rows
) -> None:
    become(rows, "active")
    rows.execute("UPDATE generations SET kind = 'live'")
    assert await changes(writing, "chunks") == {"INSERT": True, "UPDATE": True, "DELETE": True}


async def test_a_generation_that_ended_is_cleared_and_one_that_serves_is_not(
    writing: db.Connection, rows: Rows, resources: Resources
) -> None:
    become(rows, "active")
    await clear_generation(resources, "W", "G")
    assert rows.one("SELECT count(*) FROM chunks") == 2
    become(rows, "retired")
    await clear_generation(resources, "W", "G")
    assert [rows.all(f"SELECT 1 FROM {table}") for table in FILLED] == [[]] * len(FILLED)


async def test_a_writer_that_was_not_finished_is_waited_for_by_whoever_seals(
    writing: db.Connection, rows: Rows
) -> None:
    await writing.execute(f"INSERT INTO chunks {FILLED['chunks']}".encode(), ("late",))
    rows.execute("SET lock_timeout = '50ms'")
    with pytest.raises(psycopg.errors.LockNotAvailable):
        become(rows, "validating")
