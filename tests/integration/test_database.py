"""The schema's walls and the migration runner, on a real PostgreSQL."""

from __future__ import annotations

import hashlib

import grpc
import psycopg
import pytest

from services.ingest.migrate import Migration, MigrationError, migrate, read_migrations
from services.runtime import db
from services.runtime.interceptors import as_call_error

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
