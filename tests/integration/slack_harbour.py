"""A Slack with one workspace, an app that records what it gets, and clients of slack-sdk."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from random import Random

import pytest
import pytest_asyncio
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient
from slack_sdk.web.async_slack_response import AsyncSlackResponse

from tests.fakes.slack_app import SlackApp
from tests.fakes.slack_server import AppIdentity, SlackControl, SlackServer
from tests.fakes.slack_server.state import Installation

START_SECONDS = 1_800_000_000.0


class SteppedClock:
    """Epoch seconds that move only when told."""

    def __init__(self, now: float = START_SECONDS) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


@dataclass
class Harbour:
    """The workspace Harbour: Ines and Tomo in #engineering (with the bot) and in #leads."""

    slack: SlackServer
    app: SlackApp
    control: SlackControl
    installation: Installation
    client: AsyncWebClient
    clock: SteppedClock

    def channel_id(self, name: str) -> str:
        return self.control.find_channel(name).channel_id

    def user_id(self, name: str) -> str:
        return self.control.find_user(name).user_id


@asynccontextmanager
async def running_harbour() -> AsyncIterator[Harbour]:
    """Slack's clock, and the app's, stand still at START_SECONDS until moved."""
    clock = SteppedClock()
    identity = AppIdentity()
    async with (
        SlackApp(identity.signing_secret, clock) as app,
        SlackServer(app_url=app.url, clock=clock, random=Random(7), app=identity) as slack,
    ):
        control = slack.control
        control.add_team("Harbour")
        for name in ("Ines", "Tomo", "Femi"):
            control.add_user(name)
        installation = control.install(installer="Ines")
        bot = installation.bot_user_id
        control.add_channel("engineering", members=["Ines", "Tomo", bot])
        control.add_channel("leads", kind="private_channel", members=["Ines", "Tomo"])
        control.configure_delivery(time_scale=0.0, thread_parent_events=False)
        client = AsyncWebClient(installation.access_token, base_url=slack.api_url)
        client.retry_handlers.clear()
        yield Harbour(slack, app, control, installation, client, clock)


@pytest_asyncio.fixture
async def harbour() -> AsyncIterator[Harbour]:
    """A fresh workspace for one test."""
    async with running_harbour() as found:
        yield found


async def error_of(call: Awaitable[AsyncSlackResponse]) -> str:
    """The error code that a Web API call is refused with."""
    with pytest.raises(SlackApiError) as refused:
        await call
    response = refused.value.response
    assert isinstance(response, AsyncSlackResponse)
    return str(response["error"])
