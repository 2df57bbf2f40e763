"""A whole stack installed in a Slack for tests whose workspace is Beacon."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from cryptography.fernet import Fernet

from services.runtime.config import Settings
from services.stack.stack import Stack, StackError
from tests.fakes.slack_server import SlackServer
from tests.fakes.slack_server.control import SlackControl

BEACON = Path("evals/beacon")
TEAM = "Beacon"
HOME = ".recall-slack"
PORT_OFFSET = 20
KEY_FILE = "token.key"

Say = Callable[[str], None]
Json = dict[str, Any]


@dataclass(frozen=True)
class DemoSlack:
    """The running demo."""

    slack: SlackServer
    stack: Stack

    @property
    def control(self) -> SlackControl:
        """What people do in this Slack."""
        return self.slack.control

    def url(self, path: str) -> str:
        """An address of the gateway."""
        return f"http://127.0.0.1:{self.stack.port('gateway_http')}{path}"


@asynccontextmanager
async def demo_slack(say: Say, environ: Mapping[str, str] = os.environ) -> AsyncIterator[DemoSlack]:
    """The demo for the length of the block. Raises StackError and ConfigError."""
    home = Settings({"RECALL_HOME": HOME} | dict(environ)).home()
    port = Settings(environ).port("gateway_http") + PORT_OFFSET
    async with SlackServer(port=port) as slack:
        stack = Stack(home, _environ(environ, home, slack))
        demo = DemoSlack(slack, stack)
        slack.control.connect(app_url=demo.url(""))
        slack.control.add_team(TEAM)
        slack.control.load(BEACON)
        try:
            await asyncio.to_thread(stack.up, say)
            await _install(demo)
            yield demo
        finally:
            await asyncio.to_thread(stack.down, say)


def _environ(environ: Mapping[str, str], home: Path, slack: SlackServer) -> dict[str, str]:
    gateway = Settings(environ).port("gateway_http")
    return {
        **environ,
        "RECALL_HOME": str(home),
        "RECALL_SLACK_API_URL": slack.api_url,
        "RECALL_SLACK_SIGNING_SECRET": slack.app.signing_secret,
        "RECALL_SLACK_CLIENT_ID": slack.app.client_id,
        "RECALL_SLACK_CLIENT_SECRET": slack.app.client_secret,
        "RECALL_SLACK_REDIRECT_URL": f"http://127.0.0.1:{gateway}/slack/oauth/callback",
        "RECALL_TOKEN_KEY": _token_key(home),
        # This Slack answers as often as it is asked.
        "RECALL_SLACK_HISTORY_INTERVAL_SECONDS": "0.05",
        "RECALL_SLACK_HISTORY_PAGE_SIZE": "200",
    }


def _token_key(home: Path) -> str:
    """The key of this demo's tokens, the same at every start."""
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    file = home / KEY_FILE
    if not file.exists():
        file.touch(mode=0o600)
        file.write_bytes(Fernet.generate_key())
    return file.read_text("utf-8")


async def _install(demo: DemoSlack) -> None:
    """Install as a person does, and let the app join every public channel."""
    async with httpx.AsyncClient(follow_redirects=True, timeout=30) as browser:
        page = await browser.get(demo.url("/slack/oauth/start"))
    if page.status_code != httpx.codes.OK:
        raise StackError(f"The app could not be installed: {page.text}")
    bot = demo.control.find_installation("").bot_user_id
    for channel in demo.control.directory()["channels"]:
        if not channel["is_private"]:
            demo.control.join(channel["id"], bot)
    await demo.control.settle()
