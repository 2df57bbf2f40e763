"""What both processes of ingest open: pools, tokenizer, embedders."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import AsyncIterator
from datetime import UTC, datetime

from services.embedding.registry import Embedders
from services.ingest.config import IngestConfig
from services.ingest.generations import new_generation_id
from services.ingest.queue import Terms
from services.ingest.resources import Resources
from services.ingest.token_cipher import TokenCipher
from services.ingest.tokens import RanksError, load_encoder
from services.runtime import db
from services.runtime.config import ConfigError

INGEST_POOL_SIZE = 8
QUEUE_POOL_SIZE = 4


@contextlib.asynccontextmanager
async def open_resources(config: IngestConfig) -> AsyncIterator[Resources]:
    """Everything the use cases work with, until the block ends. Raises ConfigError."""
    try:
        encoder = load_encoder(config.home / "tiktoken")
    except RanksError as error:
        raise ConfigError(str(error)) from None
    embedders = Embedders(config.embedding)
    async with (
        contextlib.aclosing(embedders),
        db.open_pool(config.ingest_url, size=INGEST_POOL_SIZE) as pool,
        db.open_pool(config.queue_url, size=QUEUE_POOL_SIZE) as queue_pool,
    ):
        terms = Terms(max_attempts=config.job_max_attempts)
        yield Resources(
            pool,
            queue_pool,
            encoder,
            embedders,
            _generation_id,
            job_terms=terms,
            tokens=TokenCipher(config.token_keys),
            is_production=config.is_production,
            history_pace=config.slack.pace,
        )


def _generation_id() -> str:
    return new_generation_id(datetime.now(UTC), secrets.token_hex(4))
