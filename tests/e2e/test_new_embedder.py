"""A new embedder is brought in behind live traffic, promoted, rolled back and promoted again."""

from __future__ import annotations

import asyncio
import json
import random
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest

from services.cli.connection import connect
from services.stack.postgres import EmbeddedPostgres
from services.stack.stack import Stack
from tests.e2e.conftest import REPOSITORY, Result, environment
from tests.e2e.live_traffic import CHANNEL, WRITER, Traffic
from tests.fakes.openai_server import OpenAIServer
from tests.fakes.slack_server import SlackServer
from tests.slack_stack import install, slack_environment
from tests.waiting import until

# Searches that are to be seen under each serving generation.
SEEN = 5


@pytest.fixture
async def slack() -> AsyncIterator[SlackServer]:
    """A Slack with one team and a channel that the app is still to join."""
    async with SlackServer() as server:
        yield server


async def recall(stack: Stack, team_id: str, *arguments: str) -> Result:
    """Run ``recall generations`` beside the traffic."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "services.cli", "generations", *arguments),
        *("--workspace", team_id, "--json"),
        env=dict(stack.environ),
        cwd=REPOSITORY,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    output, errors = await process.communicate()
    assert process.returncode is not None
    return Result(process.returncode, output.decode(), errors.decode())


async def seen_under(traffic: Traffic, generation_id: str) -> None:
    """Wait until some searches were answered from a generation, since now."""
    before = len(traffic.generations)
    await until(lambda: traffic.generations[before:].count(generation_id) >= SEEN)


async def changed_to(stack: Stack, traffic: Traffic, *arguments: str) -> str:
    """Change the serving generation by the command, and see it serve; its id."""
    result = await recall(stack, traffic.team_id, *arguments)
    assert result.status == 0, result.errors
    serving = json.loads(result.output)[0]
    assert serving["state"] == "active"
    await seen_under(traffic, serving["generation_id"])
    generation_id: str = serving["generation_id"]
    return generation_id


async def bring_in(stack: Stack, traffic: Traffic) -> tuple[str, str]:
    """Build with the other embedder, validate, promote, go back, promote again; both ids."""
    await until(lambda: len(traffic.generations) >= SEEN)
    old = traffic.generations[-1]
    built = await recall(stack, traffic.team_id, "build", "--embedder", "local")
    assert built.status == 0, built.errors
    new: str = json.loads(built.output)[0]["generation_id"]
    refused = await recall(stack, traffic.team_id, "promote", new)
    assert (refused.status, "generations validate" in refused.errors) == (2, True)
    checked = await recall(stack, traffic.team_id, "validate", new, "--wait")
    assert checked.status == 0, checked.output + checked.errors
    refused = await recall(stack, traffic.team_id, "promote", new)
    assert (refused.status, "never calibrated" in refused.errors) == (2, True)
    assert await changed_to(stack, traffic, "promote", new, "--uncertified") == new
    assert await changed_to(stack, traffic, "rollback", "--reason", "a trial") == old
    assert await changed_to(stack, traffic, "promote", new, "--uncertified") == new
    return old, new


@dataclass(frozen=True)
class Harbour:
    """A running stack with its app installed, the owner's URL of its database, and traffic."""

    stack: Stack
    url: str
    traffic: Traffic

    def rows(self, query: str, *parameters: object) -> list[tuple[Any, ...]]:
        """Rows as the owner sees them."""
        with psycopg.connect(self.url) as connection:
            return connection.execute(query.encode(), parameters).fetchall()

    def nothing_waits(self) -> bool:
        """Whether every event and vector is done."""
        waiting = "SELECT 1 FROM jobs WHERE kind IN ('event', 'embedding') AND state <> 'done'"
        return not self.rows(waiting)


@asynccontextmanager
async def harbour(home: Path, slack: SlackServer, openai_url: str) -> AsyncIterator[Harbour]:
    """A stack whose first embedder is OpenAI's stand-in, with a few facts written."""
    provider = {"OPENAI_API_KEY": "sk-for-the-stand-in", "OPENAI_BASE_URL": openai_url}
    environ, control = environment(home), slack.control
    port = int(environ["PORT_BASE"])
    stack = Stack(home, environ | provider | slack_environment(slack.api_url, slack.app, port))
    control.connect(app_url=f"http://127.0.0.1:{port}")
    team_id = control.add_team("Harbour").team_id
    control.add_user(WRITER)
    control.add_channel(CHANNEL, members=[WRITER])
    try:
        await asyncio.to_thread(stack.up, print)
        await install(f"http://127.0.0.1:{port}", team_id)
        control.join(CHANNEL, control.find_installation().bot_user_id)
        url = EmbeddedPostgres(home / "postgres", stack.port("postgres")).url()
        async with connect(stack.environ) as stubs:
            traffic = Traffic(control, stubs, team_id, random.Random(4))
            await traffic.begin()
            running = Harbour(stack, url, traffic)
            await until(running.nothing_waits)
            yield running
    finally:
        await asyncio.to_thread(stack.down, print)


async def test_a_new_embedder_comes_in_behind_live_traffic(
    tmp_path: Path, slack: SlackServer
) -> None:
    with OpenAIServer() as openai:
        async with harbour(tmp_path / "home", slack, openai.base_url) as running:
            traffic, over = running.traffic, asyncio.Event()
            people = [asyncio.create_task(each(over)) for each in (traffic.write, traffic.ask)]
            try:
                old, new = await bring_in(running.stack, traffic)
            finally:
                over.set()
                await asyncio.gather(*people)
            await slack.control.settle()
            await until(running.nothing_waits)
            print(f"{traffic.asked} questions, {len(traffic.deleted)} deletions")
            assert traffic.problems == []
            assert {old, new} <= set(traffic.generations)
            assert len(traffic.deleted) >= 3
            check_rows(running, old, new)


def check_rows(running: Harbour, old: str, new: str) -> None:
    """Both generations hold the same texts and nothing that was deleted; the new one serves."""
    shown = "SELECT 1 FROM chunk_messages WHERE message_id = ANY (%s)"
    assert running.rows(shown, sorted(running.traffic.deleted)) == []
    texts = "SELECT chunk_id, text FROM chunks WHERE generation_id = %s ORDER BY 1"
    assert running.rows(texts, old) == running.rows(texts, new)
    kept = "SELECT state, width FROM generations WHERE generation_id = %s"
    assert running.rows(kept, old) == [("ready", 1536)]
    assert running.rows(kept, new) == [("active", 384)]
