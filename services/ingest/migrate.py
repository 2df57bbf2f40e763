"""Forward-only migrations with checksums: ``python -m services.ingest.migrate``.

Each file of ``migrations/`` runs once, in the order of its number, in a transaction of its own.
A file that was changed after it ran stops everything: the database no longer says what the code
believes.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files

import psycopg

from services.runtime.config import ConfigError, Settings
from services.runtime.server import exit_with_faults

# Any number of processes may migrate at once; one of them does the work.
_LOCK = 0x5EC_A11
_CREATE = b"""
CREATE TABLE IF NOT EXISTS schema_migrations (
    version integer PRIMARY KEY,
    name text NOT NULL,
    checksum text NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now()
)"""
_APPLIED = b"SELECT version, checksum FROM schema_migrations"
_GRANT = b"GRANT SELECT ON schema_migrations TO recall_ingest, recall_retrieve, recall_queue"


class MigrationError(ConfigError):
    """The database and the migration files disagree."""


@dataclass(frozen=True)
class Migration:
    """One file: ``0001_foundation.sql`` has version 1."""

    version: int
    name: str
    statements: bytes

    @property
    def checksum(self) -> str:
        """SHA-256 of the file."""
        return hashlib.sha256(self.statements).hexdigest()


def read_migrations() -> list[Migration]:
    """The migrations that ship with this version, by number."""
    folder = files("services.ingest") / "migrations"
    names = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".sql"))
    return [
        Migration(int(name.split("_", 1)[0]), name, (folder / name).read_bytes()) for name in names
    ]


def migrate(url: str, migrations: Sequence[Migration]) -> list[str]:
    """Apply what is missing. Returns the names applied; raises MigrationError."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SELECT pg_advisory_lock(%s)", (_LOCK,))
        connection.execute(_CREATE)
        applied: dict[int, str] = dict(
            connection.execute("SELECT version, checksum FROM schema_migrations")
        )
        _check(applied, migrations)
        missing = [migration for migration in migrations if migration.version not in applied]
        for migration in missing:
            _apply(connection, migration)
        return [migration.name for migration in missing]


def _check(applied: dict[int, str], migrations: Sequence[Migration]) -> None:
    known = {migration.version: migration for migration in migrations}
    for version, checksum in applied.items():
        if version not in known:
            raise MigrationError(
                f"The database has migration {version}, which this version does not know. "
                "Install the newer version."
            )
        if known[version].checksum != checksum:
            raise MigrationError(
                f"{known[version].name} was changed after it ran here. Restore the file; put the "
                "change into a new migration."
            )


def _apply(connection: psycopg.Connection, migration: Migration) -> None:
    with connection.transaction():
        connection.execute(migration.statements)
        connection.execute(
            "INSERT INTO schema_migrations (version, name, checksum) VALUES (%s, %s, %s)",
            (migration.version, migration.name, migration.checksum),
        )
        connection.execute(_GRANT)


def main() -> None:
    """Migrate the database of DATABASE_URL."""
    settings = Settings(os.environ)
    url = settings.text("DATABASE_URL")
    if not url:
        settings.fault("DATABASE_URL is not set: give the owner's URL of the database.")
    settings.done()
    try:
        applied = migrate(url, read_migrations())
    except psycopg.OperationalError as error:
        raise ConfigError(f"DATABASE_URL can not be used: {error}") from None
    for name in applied:
        print(f"applied {name}")


if __name__ == "__main__":
    exit_with_faults(main)
