"""The gateway's worker: ``python -m services.gateway.worker``. Answers what is asked in Slack."""

from __future__ import annotations

import asyncio
import os
import signal
import time

from recall.ingest.v1 import jobs_pb2
from services.gateway.clients import Stages, connect
from services.gateway.config import WorkerConfig, read_worker_config
from services.gateway.directory import Directory
from services.gateway.slack.access import Access, watching
from services.gateway.slack.asker import Desk
from services.gateway.slack.command_loop import CommandLoop
from services.gateway.slack.installations import Installations
from services.gateway.slack.run_command import run_command
from services.runtime import logs
from services.runtime.callers import FILE_NAME, Callers
from services.runtime.config import Settings
from services.runtime.server import Listener, exit_with_faults
from services.runtime.worker_health import read_health_listener, telling_health


async def work(config: WorkerConfig, health: Listener | None = None) -> None:
    """Answer commands until SIGTERM or SIGINT, then finish what is in progress.

    Tells probes that it runs where ``health`` says: what it depends on is each stage's own matter.
    """
    stages = connect(config.targets, Callers(config.home / FILE_NAME))
    desk = desk_of(stages, config)
    loop = command_loop(desk)
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, loop.stop)
    async with telling_health(health, _always), watching(desk.access, stages):
        await loop.work()
    await stages.close()


def desk_of(stages: Stages, config: WorkerConfig) -> Desk:
    """What a worker answers with."""
    return Desk(
        stages=stages,
        directory=Directory(stages, time.monotonic),
        installations=Installations(stages, config.slack),
        access=Access(time.monotonic),
    )


def command_loop(desk: Desk) -> CommandLoop:
    """A loop that runs commands at a desk."""

    async def run(job: jobs_pb2.ClaimedJob) -> None:
        await run_command(job, desk)

    return CommandLoop(desk.stages, run)


def main() -> None:
    """Configure the process and work."""
    logs.configure("gateway-worker")
    config = read_worker_config(Settings(os.environ))
    health = read_health_listener(Settings(os.environ), "GATEWAY_WORKER")
    asyncio.run(work(config, health))


async def _always() -> bool:
    return True


if __name__ == "__main__":
    exit_with_faults(main)
