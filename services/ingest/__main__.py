"""The ingest process: ``python -m services.ingest``."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator

from services.ingest.assembly import open_resources
from services.ingest.config import IngestConfig, read_config
from services.ingest.service import servicers
from services.ingest.upkeep import Upkeep
from services.ingest.wakeups import listen
from services.runtime.callers import FILE_NAME, Callers
from services.runtime.server import Servicers, exit_with_faults, run


@contextlib.asynccontextmanager
async def assemble(config: IngestConfig) -> AsyncIterator[Servicers]:
    """Open what ingest works with, and take up what was left half way."""
    async with open_resources(config) as resources:
        upkeep = Upkeep(resources)
        upkeep.resume()
        upkeep.keep_daily()
        listening = asyncio.create_task(listen(config.queue_url, resources.wakeups.wake))
        try:
            yield servicers(resources, upkeep)
        finally:
            listening.cancel()
            await upkeep.stop()


def main() -> None:
    """Serve until asked to stop."""
    config = read_config(os.environ)
    callers = Callers(config.home / FILE_NAME)
    run("ingest", config.listener, callers, lambda: assemble(config))


if __name__ == "__main__":
    exit_with_faults(main)
