"""The schema's walls and the migration runner, on a real PostgreSQL."""

from __future__ import annotations

import hashlib
from pathlib import Path
from urllib.parse import urlsplit

import grpc
import psycopg
import pytest

from services.corpus import Source
from services.ingest.migrate import Migration, MigrationError, migrate, read_migrations
from services.ingest.queue import NewJob, enqueue
from services.ingest.workspaces import create_workspace
from services.runtime import db
from services.runtime.interceptors import as_call_error
from services.stack.postgres import EmbeddedPostgres
from tests.conftest import free_port, with_database

WITHOUT_TENANT = {"schema_migrations", "embedders"}


def test_every_table_is_keyed_by_the_tenant_and_walled(database_url: str) -> None:
    with psycopg.connect(database_url) as connection:
        tables = connection.execute(
            "SELECT relname, relrowsecurity, relforcerowsecurity FROM pg_class "
            "WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"
        ).fetchall()
        keys = connection.execute(
            "SELECT c.relname, a.attname FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid "
            "JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = i.indkey[0] "
            "WHERE i.indisprimary AND c.relnamespace = 'public'::regnamespace"
        ).fetchall()
    first_column: dict[str, str] = dict(keys)
    for name, secured, forced in tables:
        if name not in WITHOUT_TENANT:
            assert (secured, forced) == (True, True), name
            assert first_column[name] == "workspace_id", name


async def test_a_missing_tenant_is_an_error_never_an_empty_result(
    database_url: str, ingest_pool: db.Pool
) -> None:
    with psycopg.connect(database_url) as owner:
        owner.execute("INSERT INTO workspaces (workspace_id, source) VALUES ('A', 'slack')")
        owner.commit()
    async with ingest_pool.connection() as connection:
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="workspace_id is not set"):
            await connection.execute("SELECT * FROM workspaces")


async def test_a_tenant_sees_and_writes_only_its_own_rows(ingest_pool: db.Pool) -> None:
    for workspace in ("A", "B"):
        async with db.writing(ingest_pool, workspace) as connection:
            await connection.execute(
                "INSERT INTO workspaces (workspace_id, source) VALUES (%s, 'slack')", (workspace,)
            )
    async with db.writing(ingest_pool, "A") as connection:
        cursor = await connection.execute("SELECT workspace_id FROM workspaces")
        assert await cursor.fetchall() == [("A",)]
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        async with db.writing(ingest_pool, "A") as connection:
            await connection.execute(
                "INSERT INTO workspaces (workspace_id, source) VALUES ('C', 'slack')"
            )


async def test_the_retrieve_role_can_not_write(retrieve_pool: db.Pool) -> None:
    async with db.reading(retrieve_pool, "A") as connection:
        with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
            await connection.execute(
                "INSERT INTO workspaces (workspace_id, source) VALUES ('A', 'slack')"
            )
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        async with db.writing(retrieve_pool, "A") as connection:
            await connection.execute(
                "INSERT INTO workspaces (workspace_id, source) VALUES ('A', 'slack')"
            )


def test_a_second_migration_run_does_nothing(database_url: str) -> None:
    assert migrate(database_url, read_migrations()) == []


def test_a_changed_migration_stops_the_run(database_url: str) -> None:
    first, *rest = read_migrations()
    changed = Migration(first.version, first.name, first.statements + b"\n-- touched")
    with pytest.raises(MigrationError, match="was changed after it ran"):
        migrate(database_url, [changed, *rest])


def test_a_database_newer_than_the_code_stops_the_run(database_url: str) -> None:
    with pytest.raises(MigrationError, match="does not know"):
        migrate(database_url, read_migrations()[:-1])


def test_a_failing_migration_leaves_nothing_behind(database_url: str) -> None:
    broken = Migration(9999, "9999_broken.sql", b"CREATE TABLE half (x int); SELECT 1/0;")
    with pytest.raises(psycopg.errors.DivisionByZero):
        migrate(database_url, [*read_migrations(), broken])
    with psycopg.connect(database_url) as connection:
        row = connection.execute("SELECT to_regclass('half')").fetchone()
    assert row == (None,)


async def test_an_owner_that_is_no_superuser_migrates_and_acts_as_every_role(
    tmp_path: Path,
) -> None:
    """As on managed PostgreSQL, where pgvector is there for the asking."""
    server = EmbeddedPostgres(tmp_path, free_port(), durable=False)
    url = server.start()
    try:
        with psycopg.connect(url, autocommit=True) as superuser:
            superuser.execute("CREATE ROLE plain LOGIN PASSWORD 'plain' CREATEROLE")
            superuser.execute("CREATE DATABASE plain OWNER plain")
        with psycopg.connect(with_database(url, "plain"), autocommit=True) as superuser:
            superuser.execute("CREATE EXTENSION vector")
        parts = urlsplit(with_database(url, "plain"))
        owner = parts._replace(netloc=f"plain:plain@{parts.hostname}:{parts.port}").geturl()
        migrate(owner, read_migrations())
        for role in (db.INGEST_ROLE, db.RETRIEVE_ROLE, db.QUEUE_ROLE):
            async with db.open_pool(db.url_as_role(owner, role), size=1) as pool:
                assert await db.can_read(pool)
        async with (
            db.open_pool(db.url_as_role(owner, db.INGEST_ROLE), size=1) as pool,
            db.writing(pool, "A") as connection,
        ):
            await create_workspace(connection, "A", Source.SLACK, "T1")
            assert await enqueue(connection, "A", NewJob("event", "k", {}))
    finally:
        server.stop()


async def test_a_value_too_large_for_an_index_is_a_defect_not_an_outage(
    ingest_pool: db.Pool,
) -> None:
    digests = "".join(hashlib.sha256(bytes([number])).hexdigest() for number in range(100))
    with pytest.raises(psycopg.errors.ProgramLimitExceeded) as raised:
        async with db.writing(ingest_pool, digests) as connection:
            await connection.execute(
                "INSERT INTO workspaces (workspace_id, source) VALUES (%s, 'slack')", (digests,)
            )
    assert as_call_error(raised.value, "r1").code is grpc.StatusCode.INTERNAL
