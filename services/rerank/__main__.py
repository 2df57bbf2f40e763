"""The rerank process: ``python -m services.rerank``."""

from __future__ import annotations

import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from recall.rerank.v1 import rerank_pb2_grpc
from services.rerank.config import RerankConfig, read_config
from services.rerank.decisions import DecisionsClient, open_http
from services.rerank.rerank import Clock, Reranker, model_tiers
from services.rerank.service import SERVICE_NAME, RerankServicer
from services.runtime.callers import FILE_NAME, Callers
from services.runtime.config import Settings
from services.runtime.server import Listener, Servicers, exit_with_faults, run


@asynccontextmanager
async def assemble(config: RerankConfig, clock: Clock = time.monotonic) -> AsyncIterator[Servicers]:
    """The servicers with the HTTP client they use, for as long as the process serves."""
    async with open_http() as http:
        client = DecisionsClient(http, config.decisions_url, config.key)
        tiers = model_tiers(client.decide if config.key else None)
        servicer = RerankServicer(Reranker(tiers, config.options, clock))
        yield Servicers(
            lambda server: rerank_pb2_grpc.add_RerankServiceServicer_to_server(servicer, server),
            (SERVICE_NAME,),
        )


def main() -> None:
    """Read the settings and serve."""
    config = read_config(Settings(os.environ))
    callers = Callers(config.home / FILE_NAME)
    run("rerank", Listener(config.host, config.port), callers, lambda: assemble(config))


if __name__ == "__main__":
    exit_with_faults(main)
