"""The gateway's process: two listeners, wired to the stages."""

from __future__ import annotations

import os
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

import grpc
import structlog
from starlette.routing import Route

from recall.gateway.v1 import admin_pb2_grpc, gateway_pb2_grpc
from services.gateway.admin_service import ADMIN_SERVICE_NAME, AdminService
from services.gateway.clients import Stages, connect
from services.gateway.config import Config, SlackSettings, read_config
from services.gateway.directory import Directory
from services.gateway.grpc_service import SERVICE_NAME, RecallService
from services.gateway.http import Demo, Limits, create_app
from services.gateway.http_server import serving_http
from services.gateway.mcp.door import serving_mcp
from services.gateway.mcp.tools import Tools
from services.gateway.replay_calibrations import replaying
from services.gateway.slack.edge import Door, slack_routes
from services.gateway.slack.gap import filling_the_gap
from services.gateway.slack.oauth import Installer, oauth_routes
from services.gateway.slack.socket_mode import socket_mode
from services.runtime.callers import FILE_NAME, Callers
from services.runtime.config import Settings
from services.runtime.server import Servicers, exit_with_faults, run

log = structlog.get_logger("gateway")


def main() -> None:
    """Read the environment and serve until told to stop."""
    config = read_config(Settings(os.environ))
    callers = Callers(config.home / FILE_NAME)

    @asynccontextmanager
    async def assemble() -> AsyncIterator[Servicers]:
        stages = connect(config.targets, callers)
        directory = Directory(stages, time.monotonic)
        service, admin = RecallService(stages, directory), AdminService(stages, directory)

        def register(server: grpc.aio.Server) -> None:
            gateway_pb2_grpc.add_RecallServiceServicer_to_server(service, server)
            admin_pb2_grpc.add_AdminServiceServicer_to_server(admin, server)

        async with AsyncExitStack() as stack:
            agents = await stack.enter_async_context(
                serving_mcp(Tools(stages, directory), callers, config.allowed_hosts)
            )
            demo = demo_of(config, stages, directory)
            app = create_app(demo, (*doors_of(config.slack, stages), agents))
            await stack.enter_async_context(serving_http(app, config.http, config.trusted_proxies))
            if config.slack.signing_secret or config.slack.app_token:
                await stack.enter_async_context(filling_the_gap(stages))
            if config.slack.app_token:
                await stack.enter_async_context(socket_mode(config.slack, stages))
            await stack.enter_async_context(replaying(stages))
            yield Servicers(register, (SERVICE_NAME, ADMIN_SERVICE_NAME))
        await stages.close()

    run("gateway", config.grpc, callers, assemble)


def doors_of(slack: SlackSettings, stages: Stages) -> Sequence[Route]:
    """Slack's doors, when there is a secret to check its signatures with."""
    if not slack.signing_secret:
        log.info("slack doors are off", remedy="set RECALL_SLACK_SIGNING_SECRET")
        return ()
    installing = oauth_routes(Installer(slack, stages)) if slack.client_id else ()
    return (*slack_routes(Door(slack.signing_secret, stages, time.time)), *installing)


def demo_of(config: Config, stages: Stages, directory: Directory) -> Demo:
    """The page as configured."""
    return Demo(
        stages=stages,
        directory=directory,
        workspace_id=config.demo_workspace,
        clock=time.monotonic,
        limits=Limits(asks_per_minute=config.asks_per_minute),
        allowed_hosts=config.allowed_hosts,
    )


if __name__ == "__main__":
    exit_with_faults(main)
