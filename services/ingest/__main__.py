"""The ingest process: ``python -m services.ingest``."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
from collections.abc import AsyncIterator
from datetime import UTC, datetime

from services.embedding.registry import Embedders
from services.ingest.config import IngestConfig, read_config
from services.ingest.generations import new_generation_id
from services.ingest.queue import Terms
from services.ingest.resources import Resources
from services.ingest.service import servicers
from services.ingest.tokens import RanksError, load_encoder
from services.ingest.upkeep import Upkeep
from services.ingest.wakeups import listen
from services.runtime import db
from services.runtime.callers import FILE_NAME, Callers
from services.runtime.config import ConfigError
from services.runtime.server import Servicers, exit_with_faults, run

QUEUE_POOL_SIZE = 4


@contextlib.asynccontextmanager
async def assemble(config: IngestConfig) -> AsyncIterator[Servicers]:
    """Open what ingest works with, and take up generations that were left half way."""
    try:
        encoder = load_encoder(config.home / "tiktoken")
    except RanksError as error:
        raise ConfigError(str(error)) from None
    embedders = Embedders(config.embedding)
    async with (
        contextlib.aclosing(embedders),
        db.open_pool(config.ingest_url) as pool,
        db.open_pool(config.queue_url, size=QUEUE_POOL_SIZE) as queue_pool,
    ):
        terms = Terms(max_attempts=config.job_max_attempts)
        resources = Resources(pool, queue_pool, encoder, embedders, _generation_id, terms)
        upkeep = Upkeep(resources)
        upkeep.resume()
        listening = asyncio.create_task(listen(config.queue_url, resources.wakeups.wake))
        try:
            yield servicers(resources, upkeep)
        finally:
            listening.cancel()
            await upkeep.stop()


def _generation_id() -> str:
    return new_generation_id(datetime.now(UTC), secrets.token_hex(4))


def main() -> None:
    """Serve until asked to stop."""
    config = read_config(os.environ)
    callers = Callers(config.home / FILE_NAME)
    run("ingest", config.listener, callers, lambda: assemble(config))


if __name__ == "__main__":
    exit_with_faults(main)
