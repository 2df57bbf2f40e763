"""The answer process: ``python -m services.answer``."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import structlog
from openai import AsyncOpenAI

from recall.answer.v1 import answer_pb2_grpc
from services.answer.config import AnswerConfig, read_config
from services.answer.extractive_writer import ExtractiveWriter
from services.answer.openai_writer import ATTEMPT_SECONDS, OpenAIWriter
from services.answer.service import SERVICE_NAME, AnswerServicer
from services.answer.writer import Writer
from services.runtime import call
from services.runtime.callers import FILE_NAME, Callers
from services.runtime.config import Settings
from services.runtime.server import Listener, Servicers, exit_with_faults, run

# For calls without a deadline.
DEFAULT_SECONDS = 120.0

log = structlog.get_logger("answer")


@asynccontextmanager
async def open_writer(config: AnswerConfig) -> AsyncIterator[Writer]:
    """OpenAI's writer when there is a key, else the extractive one; never one for the other."""
    if not config.key:
        yield ExtractiveWriter()
        return
    client = AsyncOpenAI(
        api_key=config.key, base_url=config.base_url, max_retries=0, timeout=ATTEMPT_SECONDS
    )
    async with client:
        yield OpenAIWriter(client, config.model, lambda: call.remaining_seconds(DEFAULT_SECONDS))


@asynccontextmanager
async def assemble(config: AnswerConfig) -> AsyncIterator[Servicers]:
    """The servicer with its writer, for as long as the process serves."""
    async with open_writer(config) as writer:
        log.info("writer", name=writer.name)
        servicer = AnswerServicer(writer)
        yield Servicers(
            lambda server: answer_pb2_grpc.add_AnswerServiceServicer_to_server(servicer, server),
            (SERVICE_NAME,),
        )


def main() -> None:
    """Read the settings and serve."""
    config = read_config(Settings(os.environ))
    callers = Callers(config.home / FILE_NAME)
    run("answer", Listener(config.host, config.port), callers, lambda: assemble(config))


if __name__ == "__main__":
    exit_with_faults(main)
