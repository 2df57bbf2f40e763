"""A worker before a Slack for tests and scripted stages: the workspace Harbour and its people."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from recall.corpus.v1 import corpus_pb2
from recall.ingest.v1 import ingest_pb2, slack_pb2
from services.corpus import content_sha256, slack_message_id, timestamp
from services.gateway.clients import Stages
from services.gateway.config import SlackSettings
from services.gateway.directory import Directory
from services.gateway.http import Demo, create_app
from services.gateway.http_server import serving_http
from services.gateway.slack.access import Access, watching
from services.gateway.slack.asker import Desk
from services.gateway.slack.edge import Door, slack_routes
from services.gateway.slack.installations import Installations
from services.gateway.worker import command_loop
from services.runtime.callers import Callers
from services.runtime.server import Listener
from tests.builders import instant
from tests.fakes.slack_server import SlackServer
from tests.fakes.slack_server.control import SlackControl
from tests.scripted_slack import JOB_STATES, ScriptedSlackIngest, SlackScript
from tests.scripted_stages import ScriptedRetrieve, channel, served
from tests.waiting import until

PUBLIC, PRIVATE = ingest_pb2.CHANNEL_KIND_PUBLIC, ingest_pb2.CHANNEL_KIND_PRIVATE


@dataclass
class Harbour:
    """Ines and Tomo are in #engineering (public) and #leads (private), Femi in #engineering."""

    control: SlackControl
    script: SlackScript
    stages: Stages
    desk: Desk
    team_id: str
    # Of the page that shows this workspace's public channels.
    url: str

    @property
    def ingest(self) -> ScriptedSlackIngest:
        return self.script.slack

    def channel_id(self, name: str) -> str:
        return self.control.find_channel(name).channel_id

    def user_id(self, name: str) -> str:
        return self.control.find_user(name).user_id

    def say(self, channel_name: str, user: str, text: str, thread: str = "") -> corpus_pb2.Message:
        """A message that stands in Slack and in the index."""
        posted = self.control.post(channel_name, user, text, thread=thread)
        channel_id = self.channel_id(channel_name)
        message_id = slack_message_id(self.team_id, channel_id, posted.ts)
        root = slack_message_id(self.team_id, channel_id, thread or posted.ts)
        stored = corpus_pb2.Message(
            message_id=message_id,
            workspace_id=self.team_id,
            channel_id=channel_id,
            channel_name=channel_name,
            author_id=self.user_id(user),
            author_name=user,
            posted_at=timestamp(instant(len(self.script.retrieve.messages))),
            text=text,
            thread_root_id=root,
            permalink=f"https://harbour.slack.com/archives/{channel_id}/p{_digits(posted.ts)}",
            content_sha256=content_sha256(text, self.user_id(user), None),
        )
        self.script.retrieve.messages.append(stored)
        return stored

    async def answered(self) -> None:
        """Wait until no command is left."""
        over = (JOB_STATES.JOB_STATE_DONE, JOB_STATES.JOB_STATE_DEAD)
        await self.control.settle()
        await until(lambda: all(job.state in over for job in self.ingest.jobs.values()))

    async def ask(self, user: str, text: str, channel_name: str = "engineering") -> dict[str, Any]:
        """Type /recall and wait; the answer that the person then sees."""
        await self.control.command(user, channel_name, text)
        await self.answered()
        return self.answers(user, channel_name)[-1]

    def answers(
        self, user: str, channel_name: str = "engineering", thread: str = ""
    ) -> list[dict[str, Any]]:
        """What only this person sees, without the first line that says it is coming."""
        shown = self.control.visible(user, channel_name, thread=thread)
        return [m for m in shown if m.get("is_ephemeral") and m["text"] != "Looking…"]

    def direct(self, user: str) -> list[dict[str, Any]]:
        """What the app wrote to a person directly, in all threads."""
        bot = self.control.find_installation("").bot_user_id
        opened = self.control.direct_channel(user)
        return [m for m in self.control.history(opened.channel_id) if m["user"] == bot]


def texts(message: dict[str, Any]) -> str:
    """Everything a message shows."""
    sections = [b["text"]["text"] for b in message["blocks"] if b["type"] == "section"]
    notes = [e["text"] for b in message["blocks"] if b["type"] == "context" for e in b["elements"]]
    return "\n".join([*sections, *notes])


def buttons(message: dict[str, Any]) -> list[str]:
    """Ids of a message's buttons."""
    rows = [b for b in message["blocks"] if b["type"] == "actions"]
    return [element["action_id"] for row in rows for element in row["elements"]]


@asynccontextmanager
async def harbour(callers: Callers, *, works: bool = True) -> AsyncIterator[Harbour]:
    """The workspace with its app; the worker runs unless ``works`` is off."""
    script = SlackScript(ScriptedRetrieve([]))
    async with SlackServer() as slack, served(script, callers) as stages:
        control = slack.control
        team = control.add_team("Harbour")
        for name in ("Ines", "Tomo", "Femi"):
            control.add_user(name)
        installation = control.install(installer="Ines")
        bot = installation.bot_user_id
        control.add_channel("engineering", members=["Ines", "Tomo", "Femi", bot])
        control.add_channel("leads", kind="private_channel", members=["Ines", "Tomo", bot])
        control.configure_delivery(time_scale=0.0, thread_parent_events=False)
        ingest = script.slack
        ingest.teams[team.team_id] = team.team_id
        ingest.workspaces[team.team_id] = [
            channel(control.find_channel("engineering").channel_id, PUBLIC, "engineering"),
            channel(control.find_channel("leads").channel_id, PRIVATE, "leads"),
        ]
        ingest.tokens[team.team_id] = slack_pb2.LeaseTokenResponse(
            bot_token=installation.access_token,
            bot_user_id=bot,
            team_id=team.team_id,
            url="https://harbour.slack.com/",
        )
        settings = SlackSettings(
            slack.api_url,
            client_id=slack.app.client_id,
            client_secret=slack.app.client_secret,
        )
        desk = Desk(
            stages,
            Directory(stages, time.monotonic, keep_seconds=0),
            Installations(stages, settings),
            Access(time.monotonic),
        )
        demo = Demo(stages, desk.directory, team.team_id, time.monotonic)
        routes = slack_routes(Door(slack.app.signing_secret, stages, time.time))
        async with serving_http(create_app(demo, routes), Listener("127.0.0.1", 0)) as port:
            url = f"http://127.0.0.1:{port}"
            control.connect(app_url=url)
            here = Harbour(control, script, stages, desk, team.team_id, url)
            if not works:
                yield here
                return
            async with working(here):
                yield here


@asynccontextmanager
async def working(here: Harbour) -> AsyncIterator[None]:
    """A worker for the length of the block."""
    loop = command_loop(here.desk)
    async with watching(here.desk.access, here.stages):
        task = asyncio.create_task(loop.work())
        try:
            yield
        finally:
            loop.stop()
            await task


def _digits(ts: str) -> str:
    return ts.replace(".", "")
