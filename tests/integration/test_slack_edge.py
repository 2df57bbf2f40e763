"""Slack's doors over real HTTP, knocked at by a Slack that signs as the real one does."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from urllib.parse import urlencode

import httpx
import pytest

from services.gateway.directory import Directory
from services.gateway.http import Demo, create_app
from services.gateway.http_server import serving_http
from services.gateway.slack.edge import LOOKING, NOT_INSTALLED, TRY_AGAIN, Door, slack_routes
from services.gateway.slack.signature import sign
from services.runtime.callers import Callers
from services.runtime.server import Listener
from tests.fakes.slack_server import SlackServer
from tests.fakes.slack_server.control import SlackControl
from tests.scripted_slack import ScriptedSlackIngest, SlackScript
from tests.scripted_stages import ScriptedRetrieve, served

LOOPBACK = Listener("127.0.0.1", 0)


@dataclass
class Edge:
    """The doors, a Slack that knocks, and what was recorded."""

    control: SlackControl
    client: httpx.AsyncClient
    ingest: ScriptedSlackIngest
    secret: str
    team_id: str

    async def post(
        self, path: str, body: bytes, *, secret: str = "", age_seconds: float = 0
    ) -> httpx.Response:
        stamp = str(int(time.time() - age_seconds))
        signature = sign(secret or self.secret, stamp, body)
        headers = {"x-slack-request-timestamp": stamp, "x-slack-signature": signature}
        return await self.client.post(path, content=body, headers=headers)


Knock = Callable[..., AbstractAsyncContextManager[Edge]]


@pytest.fixture
def edge(callers: Callers) -> Knock:
    """Doors with a secret; with ``secret=False`` without one."""

    @asynccontextmanager
    async def open_doors(*, doors: bool = True, installed: bool = True) -> AsyncIterator[Edge]:
        script = SlackScript(ScriptedRetrieve([]))
        async with SlackServer() as slack, served(script, callers) as stages:
            control = slack.control
            team = control.add_team("Harbour")
            control.add_user("Ines")
            installation = control.install()
            control.add_channel("engineering", members=["Ines", installation.bot_user_id])
            if installed:
                script.slack.teams[team.team_id] = team.team_id
            demo = Demo(
                stages,
                Directory(stages, time.monotonic),
                "beacon",
                time.monotonic,
                allowed_hosts=("localhost",),
            )
            routes = (
                slack_routes(Door(slack.app.signing_secret, stages, time.time)) if doors else ()
            )
            async with serving_http(create_app(demo, routes), LOOPBACK) as port:
                url = f"http://127.0.0.1:{port}"
                control.connect(app_url=url)
                control.configure_delivery(time_scale=0.0)
                async with httpx.AsyncClient(base_url=url) as client:
                    yield Edge(
                        control, client, script.slack, slack.app.signing_secret, team.team_id
                    )

    return open_doors


async def test_a_message_is_recorded_and_acknowledged(edge: Knock) -> None:
    async with edge() as at:
        at.control.post("engineering", "Ines", "Berth 4 is free.")
        await at.control.settle()
        (delivery,) = at.control.deliveries()
    assert (delivery.state, delivery.attempts) == ("acknowledged", [200])
    (recorded,) = at.ingest.events.values()
    assert json.loads(recorded.envelope_json) == delivery.envelope


async def test_the_challenge_is_answered_at_once_but_only_to_slack(edge: Knock) -> None:
    body = json.dumps({"type": "url_verification", "challenge": "abc"}).encode()
    async with edge() as at:
        answer = await at.control.verify_url("abc")
        forged = await at.post("/slack/events", body, secret="not the secret")
    assert (answer.status, answer.body) == (200, "abc")
    assert (forged.status_code, "abc" in forged.text) == (401, False)


@pytest.mark.parametrize("path", ["/slack/events", "/slack/commands", "/slack/interactions"])
async def test_what_slack_did_not_sign_now_is_refused_at_every_door(edge: Knock, path: str) -> None:
    async with edge() as at:
        forged = await at.post(path, b"{}", secret="not the secret")
        old = await at.post(path, b"{}", age_seconds=360)
        early = await at.post(path, b"{}", age_seconds=-360)
        unsigned = await at.client.post(path, content=b"{}")
    assert [r.status_code for r in (forged, old, early, unsigned)] == [401] * 4
    assert not at.ingest.events and not at.ingest.commands


async def test_a_signed_body_that_is_not_json_is_a_bad_request(edge: Knock) -> None:
    async with edge() as at:
        events = await at.post("/slack/events", b"not json")
        interactions = await at.post("/slack/interactions", urlencode({"payload": "{"}).encode())
        empty = await at.post("/slack/commands", b"")
    assert [r.status_code for r in (events, interactions, empty)] == [400] * 3
    assert events.headers["x-slack-no-retry"] == "1"


async def test_the_bytes_are_verified_as_they_came(edge: Knock) -> None:
    event = {"type": "message", "channel": "C1", "text": "Grüße"}
    envelope = {"type": "event_callback", "event_id": "Ev1", "event": event}
    body = json.dumps(envelope | {"team_id": "T"}, indent=3, ensure_ascii=False).encode()
    async with edge() as at:
        reply = await at.post("/slack/events", body)
    assert reply.status_code == 200
    assert at.ingest.events["Ev1"].envelope_json == body


async def test_one_event_delivered_several_times_at_once_is_one(edge: Knock) -> None:
    async with edge() as at:
        at.control.configure_delivery(time_scale=0.0, copies=3)
        at.control.post("engineering", "Ines", "Berth 4 is free.")
        await at.control.settle()
        (delivery,) = at.control.deliveries()
        at.control.deliver_again(delivery.event_id, retry_number=1)
        await at.control.settle()
    assert delivery.attempts == [200] * 4
    assert list(at.ingest.events) == [delivery.event_id]


async def test_an_outage_makes_slack_send_an_event_again(edge: Knock) -> None:
    async with edge() as at:
        at.ingest.is_away = True
        at.control.post("engineering", "Ines", "Berth 4 is free.")
        await at.control.settle()
        (delivery,) = at.control.deliveries()
        before = list(delivery.attempts)
        at.ingest.is_away = False
        at.control.deliver_again(delivery.event_id)
        await at.control.settle()
    assert before == [503] * 4
    assert list(at.ingest.events) == [delivery.event_id]


async def test_an_outage_is_told_to_whoever_typed_a_command(edge: Knock) -> None:
    async with edge() as at:
        at.ingest.is_away = True
        answer = await at.control.command("Ines", "engineering", "ask which berth?")
        (seen,) = at.control.visible("Ines", "engineering")
    assert answer.status == 200
    assert (seen["text"], seen["is_ephemeral"]) == (TRY_AGAIN, True)


async def test_a_command_is_recorded_and_answered_at_once(edge: Knock) -> None:
    async with edge() as at:
        answer = await at.control.command("Ines", "engineering", "ask which berth?")
        (seen,) = at.control.visible("Ines", "engineering")
        calls = at.control.calls()
    assert answer.status == 200
    assert (seen["text"], seen["is_ephemeral"]) == (LOOKING, True)
    (recorded,) = at.ingest.commands.values()
    assert (recorded.dedup_key, recorded.team_id) == (answer.trigger_id, at.team_id)
    assert recorded.command.text == "ask which berth?"
    assert calls == []


async def test_a_workspace_without_the_app_is_told_so(edge: Knock) -> None:
    async with edge(installed=False) as at:
        await at.control.command("Ines", "engineering", "ask which berth?")
        (seen,) = at.control.visible("Ines", "engineering")
    assert seen["text"] == NOT_INSTALLED


async def test_a_mention_is_a_command_and_its_message_an_event(edge: Knock) -> None:
    async with edge() as at:
        bot = at.control.find_installation("").bot_user_id
        at.control.post("engineering", "Ines", f"<@{bot}> which berth?")
        await at.control.settle()
    (command,) = at.ingest.commands.values()
    assert command.command.text == "which berth?"
    assert len(at.ingest.events) == 1


async def test_a_body_beyond_a_mebibyte_is_refused(edge: Knock) -> None:
    async with edge() as at:
        fits = await at.post("/slack/events", b" " * (1024 * 1024))
        beyond = await at.post("/slack/events", b" " * (1024 * 1024 + 1))
    assert (fits.status_code, beyond.status_code) == (400, 413)


async def test_a_view_that_could_not_be_recorded_stays_open_with_a_reason(edge: Knock) -> None:
    payload = {
        "type": "view_submission",
        "team": {"id": "T"},
        "user": {"id": "U"},
        "trigger_id": "t",
        "view": {
            "callback_id": "mark_corrected",
            "blocks": [{"type": "input", "block_id": "link"}],
        },
    }
    async with edge() as at:
        at.ingest.is_away = True
        body = urlencode({"payload": json.dumps(payload)}).encode()
        reply = await at.post("/slack/interactions", body)
    assert reply.json() == {"response_action": "errors", "errors": {"link": TRY_AGAIN}}


async def test_without_a_secret_there_are_no_doors(edge: Knock) -> None:
    async with edge(doors=False) as at:
        replies = [
            await at.post(f"/slack/{door}", b"{}")
            for door in ("events", "commands", "interactions")
        ]
    assert [reply.status_code for reply in replies] == [404] * 3


async def test_the_pages_own_limits_do_not_hold_slack_up(edge: Knock) -> None:
    async with edge() as at:
        page = await at.client.get("/", headers={"host": "recall.example"})
        event = {"type": "event_callback", "event_id": "E", "event": {"type": "x"}}
        body = json.dumps(event).encode()
        slack = [await at.post("/slack/events", body) for _ in range(100)]
    assert page.status_code == 421
    assert {reply.status_code for reply in slack} == {200}
