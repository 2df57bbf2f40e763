"""The retrieve process: ``python -m services.retrieve``."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import structlog

from recall.retrieve.v1 import retrieve_pb2_grpc
from services.embedding.registry import Embedders
from services.retrieve.config import RetrieveConfig, read_config
from services.retrieve.search import Retrieval
from services.retrieve.service import SERVICE_NAME, RetrieveServicer
from services.runtime import db
from services.runtime.callers import FILE_NAME, Callers
from services.runtime.config import Settings
from services.runtime.errors import CallError
from services.runtime.server import Listener, Servicers, exit_with_faults, run

log = structlog.get_logger("retrieve")


@asynccontextmanager
async def assemble(config: RetrieveConfig) -> AsyncIterator[Servicers]:
    """The servicer with its pool and embedders, for as long as the process serves."""
    embedders = Embedders(config.embedding)
    async with db.open_pool(config.database_url) as pool:
        retrieval = Retrieval(pool, embedders, lambda: datetime.now(UTC), time.monotonic)
        servicer = RetrieveServicer(retrieval)
        loading = asyncio.create_task(load_local_model(embedders))
        try:
            yield Servicers(
                lambda server: retrieve_pb2_grpc.add_RetrieveServiceServicer_to_server(
                    servicer, server
                ),
                (SERVICE_NAME,),
                lambda: db.can_read(pool),
            )
        finally:
            loading.cancel()
            await embedders.aclose()


async def load_local_model(embedders: Embedders) -> None:
    """Embed a word, so that the first question does not wait for the model.

    A model that can not be loaded concerns only the generations built with it; their questions
    fail with its own error.
    """
    began = time.monotonic()
    try:
        await embedders.by_name("local").embed_question("ready")
    except CallError as error:
        log.warning("local_model_not_loaded", detail=error.message)
    else:
        log.info("local_model_loaded", milliseconds=round((time.monotonic() - began) * 1000))


def main() -> None:
    """Read the settings and serve."""
    config = read_config(Settings(os.environ))
    callers = Callers(config.home / FILE_NAME)
    run("retrieve", Listener(config.host, config.port), callers, lambda: assemble(config))


if __name__ == "__main__":
    exit_with_faults(main)
