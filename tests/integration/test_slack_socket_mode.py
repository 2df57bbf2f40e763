"""The second front door: the same deliveries over a socket, through every way it breaks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest

from services.gateway.config import SlackSettings
from services.gateway.slack.edge import LOOKING, TRY_AGAIN
from services.gateway.slack.socket_mode import socket_mode
from services.runtime.callers import Callers
from tests.fakes.slack_server import SlackServer
from tests.fakes.slack_server.control import SlackControl
from tests.scripted_slack import ScriptedSlackIngest, SlackScript
from tests.scripted_stages import ScriptedRetrieve, served
from tests.waiting import until

PING_SECONDS = 0.2


@dataclass
class Socket:
    """A connected app."""

    control: SlackControl
    ingest: ScriptedSlackIngest

    async def hears(self, text: str) -> None:
        """A message posted now is recorded."""
        before = len(self.ingest.events)
        self.control.post("engineering", "Ines", text)
        await self.control.settle()
        assert len(self.ingest.events) == before + 1

    async def connected(self) -> None:
        await until(lambda: bool(self.control.sockets.sockets))


@pytest.fixture
async def socket(callers: Callers) -> AsyncIterator[Socket]:
    """An app that receives over a socket."""
    script = SlackScript(ScriptedRetrieve([]))
    async with SlackServer() as slack, served(script, callers) as stages:
        control = slack.control
        team = control.add_team("Harbour")
        control.add_user("Ines")
        installation = control.install()
        control.add_channel("engineering", members=["Ines", installation.bot_user_id])
        control.connect(app_url="http://127.0.0.1:9", transport="socket")
        control.configure_delivery(time_scale=0.0)
        script.slack.teams[team.team_id] = team.team_id
        script.slack.workspaces[team.team_id] = []
        settings = SlackSettings(slack.api_url, app_token=slack.app.app_token)
        async with socket_mode(settings, stages, PING_SECONDS):
            found = Socket(control, script.slack)
            await found.connected()
            yield found


async def test_events_and_commands_arrive_as_over_http(socket: Socket) -> None:
    await socket.hears("Berth 4 is free.")
    await socket.control.command("Ines", "engineering", "ask which berth?")
    (command,) = socket.ingest.commands.values()
    assert command.command.text == "ask which berth?"
    (_, shown) = socket.control.visible("Ines", "engineering")
    assert shown["text"] == LOOKING


async def test_an_outage_leaves_an_event_unacknowledged_and_is_told_for_a_command(
    socket: Socket,
) -> None:
    socket.control.configure_delivery(time_scale=0.0, timeout_seconds=0.3)
    socket.ingest.is_away = True
    socket.control.post("engineering", "Ines", "Berth 4 is free.")
    await socket.control.settle()
    (delivery,) = socket.control.deliveries("message")
    assert delivery.state == "given up"
    await socket.control.command("Ines", "engineering", "ask which berth?")
    assert socket.control.visible("Ines", "engineering")[-1]["text"] == TRY_AGAIN


async def test_events_flow_again_after_slack_closes_the_connection(socket: Socket) -> None:
    await socket.control.disconnect_sockets()
    await until(lambda: not socket.control.sockets.sockets)
    await socket.connected()
    await socket.hears("Berth 4 is free.")


@pytest.mark.parametrize("kind", ["error", "http", "reset"])
async def test_events_flow_again_when_the_first_attempts_to_reconnect_fail(
    socket: Socket, kind: str
) -> None:
    socket.control.add_fault(
        "apps.connections.open",
        kind,  # type: ignore[arg-type]
        error="internal_error",
        times=2,
    )
    await socket.control.disconnect_sockets()
    await until(lambda: len(socket.control.calls("apps.connections.open")) >= 4)
    await socket.connected()
    await socket.hears("Berth 4 is free.")


async def test_events_flow_again_when_the_new_address_is_refused(socket: Socket) -> None:
    tickets = socket.control.world.socket_tickets
    before = len(socket.control.calls("apps.connections.open"))

    async def spoil() -> None:
        await until(lambda: len(socket.control.calls("apps.connections.open")) > before)
        tickets.clear()

    spoiling = asyncio.create_task(spoil())
    await socket.control.disconnect_sockets()
    await spoiling
    await socket.connected()
    await socket.hears("Berth 4 is free.")


async def test_what_was_missed_meanwhile_is_read_from_history(socket: Socket) -> None:
    assert socket.ingest.backfills == []
    await socket.control.disconnect_sockets()
    await until(lambda: bool(socket.ingest.backfills))
    assert socket.ingest.backfills == [next(iter(socket.ingest.workspaces))]
