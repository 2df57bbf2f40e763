"""A stack of processes whose app is installed in a Slack for tests."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from evals.own_stack import environment_of
from services.stack.postgres import EmbeddedPostgres
from services.stack.stack import Stack
from tests.fakes.slack_server import SlackServer
from tests.fakes.slack_server.control import SlackControl
from tests.slack_stack import install, slack_environment

TEAM = "Harbour"
# Slack's retries after a minute and after five come after 6 and after 30 seconds.
TIME_SCALE = 0.1
# What Slack shows at once it confirms so much later.
SLOW_SECONDS = 0.5

Say = Callable[[str], None]


@dataclass(frozen=True)
class Stage:
    """What is running. ``team_id`` is the id of the workspace too."""

    slack: SlackServer
    stack: Stack
    team_id: str
    bot_id: str

    @property
    def control(self) -> SlackControl:
        """What people do in this Slack."""
        return self.slack.control

    @property
    def postgres(self) -> EmbeddedPostgres:
        """The stack's database server."""
        return EmbeddedPostgres(self.stack.home / "postgres", self.stack.port("postgres"))

    async def up(self, say: Say) -> None:
        """Start what does not run, to the end even when the caller is interrupted meanwhile.

        Raises StackError.
        """
        starting = asyncio.create_task(asyncio.to_thread(self.stack.up, say))
        try:
            await asyncio.shield(starting)
        except asyncio.CancelledError:
            await starting
            raise

    def database_url(self) -> str:
        """As its owner, who sees the rows of every workspace."""
        return self.postgres.url()


@asynccontextmanager
async def staged(home: Path, port_base: int, say: Say) -> AsyncIterator[Stage]:
    """The stack with its app for the length of the block.

    Raises StackError and NotInstalledError.
    """
    async with SlackServer() as slack:
        environ = environment_of(os.environ, home, port_base)
        stack = Stack(home, environ | slack_environment(slack.api_url, slack.app, port_base))
        gateway = f"http://127.0.0.1:{port_base}"
        slack.control.connect(app_url=gateway)
        slack.control.configure_delivery(time_scale=TIME_SCALE)
        # Between a post and the record that it was made a kill does the most harm.
        for method in ("chat.postEphemeral", "chat.postMessage"):
            slack.control.add_fault(method, "slow", times=None, seconds=SLOW_SECONDS)
        team_id = slack.control.add_team(TEAM).team_id
        try:
            await asyncio.to_thread(stack.up, say)
            await install(gateway, team_id)
            bot_id = slack.control.find_installation().bot_user_id
            yield Stage(slack, stack, team_id, bot_id)
        finally:
            await asyncio.to_thread(stack.down, say)
