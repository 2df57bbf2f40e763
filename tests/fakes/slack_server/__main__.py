"""A Slack of its own: ``python -m tests.fakes.slack_server --port 7480 --load evals/beacon``."""

from __future__ import annotations

import argparse
import asyncio
import signal
from pathlib import Path

from tests.fakes.slack_server.server import SlackServer


def main() -> None:
    """Serve until interrupted; print what the app is to be configured with."""
    parser = argparse.ArgumentParser(prog="python -m tests.fakes.slack_server")
    parser.add_argument("--port", type=int, default=7480)
    parser.add_argument("--app-url", default="", help="where Recall's gateway listens")
    parser.add_argument("--events-url", default="", help="instead of <app-url>/slack/events")
    parser.add_argument("--transport", choices=("http", "socket"), default="http")
    parser.add_argument("--team", default="Beacon", help="name of the workspace to make")
    parser.add_argument("--load", type=Path, help="folder to load, such as evals/beacon")
    parser.add_argument("--token", default="", help="install the app with this bot token")
    parser.add_argument("--tier", choices=("unlimited", "strict", "marketplace"))
    asyncio.run(serve(parser.parse_args()))


async def serve(chosen: argparse.Namespace) -> None:
    """Run one workspace as the arguments say."""
    async with SlackServer(port=chosen.port) as server:
        control = server.control
        control.connect(
            app_url=chosen.app_url or chosen.events_url.removesuffix("/slack/events"),
            events_url=chosen.events_url,
            transport=chosen.transport,
        )
        control.add_team(chosen.team)
        if chosen.token:
            control.install(access_token=chosen.token)
        if chosen.load:
            control.load(chosen.load)
        if chosen.tier:
            control.use_tier(chosen.tier)
        print(_configuration(server), flush=True)
        await _interrupted()


def _configuration(server: SlackServer) -> str:
    app = server.app
    lines = {
        "api_url": server.api_url,
        "authorize_url": server.authorize_url,
        "control_url": f"{server.base_url}/control",
        "client_id": app.client_id,
        "client_secret": app.client_secret,
        "signing_secret": app.signing_secret,
        "app_token": app.app_token,
    }
    return "\n".join(f"{name}={value}" for name, value in lines.items())


async def _interrupted() -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    await stop.wait()


if __name__ == "__main__":
    main()
