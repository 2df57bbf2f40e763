"""The Slack for tests delivers as Slack does: signed, retried, twice, late, by socket."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from typing import Any

import pytest
from slack_sdk.socket_mode.aiohttp import SocketModeClient
from slack_sdk.socket_mode.async_client import AsyncBaseSocketModeClient
from slack_sdk.socket_mode.request import SocketModeRequest
from slack_sdk.socket_mode.response import SocketModeResponse

from tests.conftest import free_port
from tests.fakes.slack_app import AppAnswer
from tests.fakes.slack_server import ControlError, RemoteControl
from tests.fakes.slack_server.delivery_settings import Signature
from tests.integration.slack_harbour import Harbour, harbour

__all__ = ["harbour"]


async def test_events_commands_and_clicks_are_signed_over_the_raw_bytes(harbour: Harbour) -> None:
    ts = harbour.control.post("engineering", "Ines", "Größe 🚢").ts
    await harbour.control.command("Ines", "engineering", "ask “wo?” & wann=?")
    await harbour.control.shortcut("Ines", "engineering", ts, "summarise")
    await harbour.control.verify_url("abc")
    await harbour.control.settle()

    assert {one.path: one.valid for one in harbour.app.received} == {
        "/slack/events": True,
        "/slack/commands": True,
        "/slack/interactions": True,
    }
    command = next(one.form for one in harbour.app.received if one.path == "/slack/commands")
    assert (command["command"], command["text"]) == ("/recall", "ask “wo?” & wann=?")
    assert command["user_id"] == harbour.user_id("Ines")
    assert command["response_url"].startswith(harbour.slack.base_url)


@pytest.mark.parametrize("signature", ["wrong", "missing", "other_bytes"])
async def test_a_signature_can_be_made_invalid(harbour: Harbour, signature: Signature) -> None:
    harbour.control.configure_delivery(time_scale=0.0, signature=signature)
    harbour.control.post("engineering", "Ines", "hello")
    await harbour.control.settle()

    assert [one.valid for one in harbour.app.received] == [False]


@pytest.mark.parametrize(("skew_seconds", "valid"), [(-300, True), (-301, False), (301, False)])
async def test_the_sent_time_can_be_skewed(
    harbour: Harbour, skew_seconds: float, valid: bool
) -> None:
    harbour.control.configure_delivery(time_scale=0.0, skew_seconds=skew_seconds)
    harbour.control.post("engineering", "Ines", "hello")
    await harbour.control.settle()

    assert [one.valid for one in harbour.app.received] == [valid]


async def test_a_refused_event_is_retried_three_times(harbour: Harbour) -> None:
    harbour.app.answers.extend(AppAnswer(status=503) for _ in range(4))
    harbour.control.post("engineering", "Ines", "hello")
    await harbour.control.settle()

    retries = [
        (one.headers.get("x-slack-retry-num"), one.headers.get("x-slack-retry-reason"))
        for one in harbour.app.received
    ]
    assert retries == [(None, None), *((str(n), "http_error") for n in (1, 2, 3))]
    assert len({one.json["event_id"] for one in harbour.app.received}) == 1
    (delivery,) = harbour.control.deliveries()
    assert (delivery.attempts, delivery.state) == ([503] * 4, "given up")


async def test_any_2xx_ends_the_retries_and_so_does_the_apps_wish(harbour: Harbour) -> None:
    harbour.app.answers.extend(
        [
            AppAnswer(status=500),
            AppAnswer(status=204),
            AppAnswer(status=500, headers={"X-Slack-No-Retry": "1"}),
        ]
    )
    harbour.control.hold_events()
    harbour.control.post("engineering", "Ines", "one")
    harbour.control.post("engineering", "Ines", "two")
    harbour.control.release_events()
    await harbour.control.settle()

    found = [(one.attempts, one.state) for one in harbour.control.deliveries()]
    assert found == [([500, 204], "acknowledged"), ([500], "given up")]


async def test_an_app_that_does_not_answer_in_time_gets_the_event_again(harbour: Harbour) -> None:
    harbour.control.configure_delivery(time_scale=0.0, timeout_seconds=0.3)
    harbour.app.answers.append(AppAnswer(hold=True))
    harbour.control.post("engineering", "Ines", "hello")
    await harbour.control.settle()

    assert harbour.app.received[1].headers["x-slack-retry-reason"] == "http_timeout"
    assert harbour.control.deliveries()[0].attempts == [0, 200]


async def test_an_app_that_is_away_is_tried_again(harbour: Harbour) -> None:
    harbour.control.connect(app_url=f"http://127.0.0.1:{free_port()}")
    harbour.control.post("engineering", "Ines", "hello")
    await harbour.control.settle()

    assert harbour.control.deliveries()[0].attempts == [0, 0, 0, 0]


async def test_held_events_are_released_in_any_order_and_number(harbour: Harbour) -> None:
    harbour.control.hold_events()
    ts = harbour.control.post("engineering", "Ines", "first").ts
    harbour.control.delete("engineering", ts)
    await harbour.control.settle()
    before = len(harbour.app.received)
    harbour.control.release_events([1, 0, 1])
    await harbour.control.settle()

    subtypes = [event.get("subtype", "") for event in harbour.app.events]
    assert (before, subtypes) == (0, ["message_deleted", "", "message_deleted"])
    assert harbour.app.received[0].json["event_id"] == harbour.app.received[2].json["event_id"]


async def test_an_event_can_come_several_times_at_once_and_again_later(harbour: Harbour) -> None:
    harbour.control.configure_delivery(time_scale=0.0, copies=2)
    harbour.control.post("engineering", "Ines", "hello")
    await harbour.control.settle()
    event_id = harbour.control.deliveries()[0].event_id
    harbour.control.deliver_again(event_id, retry_number=2)
    await harbour.control.settle()

    assert [one.json["event_id"] for one in harbour.app.received] == [event_id] * 3
    assert harbour.app.received[2].headers["x-slack-retry-num"] == "2"


async def test_the_challenge_is_answered_at_once(harbour: Harbour) -> None:
    harbour.app.answers.append(AppAnswer(body="abc"))

    answer = await harbour.control.verify_url("abc")

    assert (answer.status, answer.body) == (200, "abc")
    sent = harbour.app.received[0].json
    assert (sent["type"], sent["challenge"]) == ("url_verification", "abc")


async def test_a_command_is_sent_once_and_its_failure_is_shown(harbour: Harbour) -> None:
    harbour.app.answers.extend(
        [
            AppAnswer(body="one moment"),
            AppAnswer(body='{"response_type": "in_channel", "text": "to all"}'),
            AppAnswer(status=500),
        ]
    )
    for _ in range(3):
        await harbour.control.command("Ines", "engineering", "help")

    assert len(harbour.app.received) == 3
    shown = [row["text"] for row in harbour.control.visible("Ines", "engineering")]
    assert shown == ["one moment", "to all", '/recall failed with the error "dispatch_failed"']
    others = [row["text"] for row in harbour.control.visible("Tomo", "engineering")]
    assert others == ["to all"]


async def test_socket_mode_brings_events_and_commands_and_takes_acknowledgements(
    harbour: Harbour,
) -> None:
    harbour.control.connect(app_url=harbour.app.url, transport="socket")
    requests: list[SocketModeRequest] = []

    async def answer(client: AsyncBaseSocketModeClient, request: SocketModeRequest) -> None:
        requests.append(request)
        payload = {"text": "one moment"} if request.type == "slash_commands" else None
        await client.send_socket_mode_response(
            SocketModeResponse(envelope_id=request.envelope_id, payload=payload)
        )

    harbour.client.token = None
    client = SocketModeClient(harbour.slack.app.app_token, web_client=harbour.client)
    client.socket_mode_request_listeners.append(answer)
    await client.connect()  # type: ignore[no-untyped-call]
    try:
        harbour.control.post("engineering", "Ines", "hello")
        command = await harbour.control.command("Ines", "engineering", "help")
        await harbour.control.settle()
    finally:
        await client.close()  # type: ignore[no-untyped-call]

    by_type: dict[str, Any] = {request.type: request.payload for request in requests}
    assert by_type["events_api"]["event"]["text"] == "hello"
    assert by_type["slash_commands"]["command"] == "/recall"
    assert json.loads(command.body) == {"text": "one moment"}
    assert harbour.control.deliveries()[0].state == "acknowledged"
    assert harbour.app.received == []


async def test_without_a_socket_events_are_retried_until_given_up(harbour: Harbour) -> None:
    harbour.control.connect(transport="socket")
    harbour.control.post("engineering", "Ines", "hello")
    await harbour.control.settle()

    (delivery,) = harbour.control.deliveries()
    assert (delivery.attempts, delivery.state) == ([0, 0, 0, 0], "given up")


async def test_a_process_of_its_own_is_driven_over_http() -> None:
    port = free_port()
    arguments = ("--port", str(port), "--team", "Beacon", "--load", "evals/beacon")
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "tests.fakes.slack_server", *arguments, "--token", "xoxb-demo"),
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    try:
        first = (await process.stdout.readline()).decode()
        remote = RemoteControl(f"http://127.0.0.1:{port}")
        posted = await asyncio.to_thread(
            remote.call, "post", channel="#engineering", user="@Ines", text="Hello"
        )
        seen = await asyncio.to_thread(remote.call, "visible", user="Ines", channel="engineering")
        with pytest.raises(ControlError, match="Nobody in Beacon is called 'Nobody'"):
            await asyncio.to_thread(
                remote.call, "post", channel="engineering", user="Nobody", text="Hello"
            )
        remote.close()
    finally:
        os.kill(process.pid, signal.SIGTERM)
        code = await process.wait()

    assert first == f"api_url=http://127.0.0.1:{port}/api/\n"
    assert seen[-1]["ts"] == posted["ts"]
    assert len(seen) > 50
    assert code == 0
