"""What the environment says to the ingest process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from services.embedding.registry import EmbeddingSettings, read_settings
from services.ingest.slack_settings import SlackSettings, read_slack_settings
from services.ingest.token_cipher import is_key
from services.runtime import db
from services.runtime.config import Settings
from services.runtime.server import Listener

ENVIRONMENTS = ("development", "production")


@dataclass(frozen=True)
class IngestConfig:
    """Where ingest listens, its home, its databases, its embedders, how often a job may fail."""

    listener: Listener
    home: Path
    ingest_url: str
    queue_url: str
    embedding: EmbeddingSettings
    job_max_attempts: int
    # Encrypt the tokens of installed apps; the first one writes. Empty: no app can be installed.
    token_keys: tuple[str, ...]
    slack: SlackSettings
    # Whether a generation may serve only with a certified calibration.
    is_production: bool


def read_config(environ: Mapping[str, str]) -> IngestConfig:
    """The settings of ingest. Raises ConfigError with every fault."""
    settings = Settings(environ)
    owner_url = settings.text("DATABASE_URL")
    ingest_url = settings.text("RECALL_INGEST_DATABASE_URL")
    queue_url = settings.text("RECALL_QUEUE_DATABASE_URL")
    if not owner_url and not (ingest_url and queue_url):
        settings.fault(
            "DATABASE_URL is not set. Set it to the owner's URL, or set both "
            "RECALL_INGEST_DATABASE_URL and RECALL_QUEUE_DATABASE_URL."
        )
    config = IngestConfig(
        listener=Listener(
            settings.text("RECALL_INGEST_HOST", "127.0.0.1"), settings.port("ingest")
        ),
        home=settings.home(),
        ingest_url=ingest_url or db.url_as_role(owner_url, db.INGEST_ROLE),
        queue_url=queue_url or db.url_as_role(owner_url, db.QUEUE_ROLE),
        embedding=read_settings(settings),
        token_keys=_token_keys(settings),
        slack=read_slack_settings(settings),
        is_production=settings.choice("RECALL_ENVIRONMENT", "development", ENVIRONMENTS)
        == "production",
        job_max_attempts=settings.integer("RECALL_JOB_MAX_ATTEMPTS", 8, low=1, high=1000),
    )
    settings.done()
    return config


def _token_keys(settings: Settings) -> tuple[str, ...]:
    given = settings.text("RECALL_TOKEN_KEY").split(",")
    keys = tuple(key.strip() for key in given if key.strip())
    if not all(is_key(key) for key in keys):
        settings.fault(
            "RECALL_TOKEN_KEY holds something that is no Fernet key. Make one with "
            "`python -c 'from cryptography.fernet import Fernet; "
            "print(Fernet.generate_key().decode())'`; separate several by commas, the newest first."
        )
    return keys
