"""Settings of the retrieve process."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from services.embedding.registry import EmbeddingSettings, read_settings
from services.runtime import db
from services.runtime.config import Settings


@dataclass(frozen=True)
class RetrieveConfig:
    """``database_url`` acts as the read-only role from its first statement."""

    home: Path
    host: str
    port: int
    database_url: str
    embedding: EmbeddingSettings


def read_config(settings: Settings) -> RetrieveConfig:
    """The settings. Raises ConfigError with every fault at once."""
    config = RetrieveConfig(
        home=settings.home(),
        host=settings.text("RECALL_RETRIEVE_HOST", "127.0.0.1"),
        port=settings.port("retrieve"),
        database_url=_database_url(settings),
        embedding=read_settings(settings),
    )
    settings.done()
    return config


def _database_url(settings: Settings) -> str:
    own = settings.text("RECALL_RETRIEVE_DATABASE_URL")
    owner = settings.text("DATABASE_URL")
    if not own and not owner:
        settings.fault(
            "DATABASE_URL is not set: `make up` starts a database and sets it, or name a "
            "PostgreSQL server as postgresql://user:password@host:port/database."
        )
    return own or (db.url_as_role(owner, db.RETRIEVE_ROLE) if owner else "")
