"""What is left of a purged workspace after real processes worked for three: nothing, anywhere."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import psycopg

from services.stack.postgres import EmbeddedPostgres
from services.stack.stack import Stack
from tests.e2e.conftest import environment
from tests.fakes.slack_server import SlackServer
from tests.fakes.slack_server.control import SlackControl
from tests.slack_stack import install, slack_environment
from tests.waiting import until

TEAMS = ("North", "South", "West")
# A word of each team that stands in its messages, its questions and its file names.
MARKS = {"North": "zanzibarquark", "South": "oslofjordquark", "West": "limpopoquark"}
LOOKING = "Looking…"


@dataclass
class Three:
    """Three workspaces at one stack."""

    slack: SlackServer
    stack: Stack
    database: psycopg.Connection[tuple[str, ...]]

    @property
    def control(self) -> SlackControl:
        return self.slack.control

    def rows(self) -> dict[str, list[str]]:
        """Every row of every table as text."""
        tables = self.database.execute(
            "SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1"
        ).fetchall()
        return {
            table: [
                text
                for (text,) in self.database.execute(
                    f'SELECT x::text FROM "{table}" AS x ORDER BY 1'.encode()
                )
            ]
            for (table,) in tables
        }

    def rows_of(self, team: str, tables: Sequence[str]) -> dict[str, list[str]]:
        """One workspace's rows of some tables; its id begins each."""
        begins = f"({self.control.find_team(team).team_id},"
        found = self.rows()
        return {name: [row for row in found[name] if row.startswith(begins)] for name in tables}

    async def idle(self) -> None:
        """Wait until every job has ended."""
        await self.control.settle()
        await until(
            lambda: (
                self.database.execute(
                    "SELECT count(*) FROM jobs WHERE state IN ('ready', 'running') "
                    "AND kind <> 'backfill'"
                ).fetchone()
                == (0,)  # type: ignore[comparison-overlap]
            )
        )

    async def ask(self, team: str, text: str) -> str:
        """Ask in a team; what the person then sees."""
        asker, channel = f"Ines {team}", f"{team.lower()}-room"
        before = len(self._seen(team))
        await self.control.command(asker, channel, text, team=team)
        await until(lambda: len(self._seen(team)) > before)
        return str(self._seen(team)[-1])

    def _seen(self, team: str) -> list[dict[str, object]]:
        shown = self.control.visible(f"Ines {team}", f"{team.lower()}-room", team=team)
        return [m for m in shown if m.get("is_ephemeral") and m["text"] != LOOKING]


@asynccontextmanager
async def three_workspaces(home: Path) -> AsyncIterator[Three]:
    environ = environment(home)
    async with SlackServer() as slack:
        control = slack.control
        port = int(environ["PORT_BASE"])
        stack = Stack(home, {**environ, **slack_environment(slack.api_url, slack.app, port)})
        url = f"http://127.0.0.1:{port}"
        control.connect(app_url=url)
        for team in TEAMS:
            control.add_team(team)
            control.add_user(f"Ines {team}", team=team)
        try:
            await asyncio.to_thread(stack.up, lambda _: None)
            for team in TEAMS:
                await install(url, control.find_team(team).team_id)
                bot = control.find_installation(team).bot_user_id
                members = [f"Ines {team}", bot]
                control.add_channel(f"{team.lower()}-room", team=team, members=members)
            url = EmbeddedPostgres(home / "postgres", stack.port("postgres")).url()
            with psycopg.connect(url, autocommit=True) as database:
                yield Three(slack, stack, database)
        finally:
            await asyncio.to_thread(stack.down, lambda _: None)


async def use(three: Three, team: str) -> None:
    """Post, edit, delete, ask, and send what can not be read: each with the team's mark."""
    mark, control = MARKS[team], three.control
    room, ines = f"{team.lower()}-room", f"Ines {team}"
    posted = control.post(room, ines, f"The {mark} window is Tuesday.", team=team)
    control.post(room, ines, f"A reply about {mark}.", thread=posted.ts, team=team)
    file = {"id": "F1", "name": f"{mark}.pdf", "title": mark, "mimetype": "application/pdf"}
    control.post(room, ines, "The plan as a file.", files=[file], team=team)
    gone = control.post(room, ines, f"A {mark} that goes.", team=team)
    await three.idle()
    control.edit(room, posted.ts, f"The {mark} window is Thursday.", team=team)
    control.delete(room, gone.ts, team=team)
    await three.idle()
    answer = await three.ask(team, f"ask when is the {mark} window?")
    assert "Thursday" in answer
    for text in (
        f"search {mark}",
        "summary",
        f"ask {mark} after:{mark}",
        f"ask what of {mark}? in:#{mark}",
        f"ask from:@{mark} what?",
    ):
        assert await three.ask(team, text)


async def send_unreadable(three: Three, url: str) -> None:
    """Requests that are refused, with the mark in their bodies."""
    mark = MARKS["North"]
    async with httpx.AsyncClient(base_url=url) as client:
        for path in ("/slack/events", "/slack/commands", "/slack/interactions"):
            refused = await client.post(path, content=f"{{{mark}".encode())
            assert refused.status_code == 401


async def test_a_purge_leaves_no_row_and_no_log_line_of_its_workspace(tmp_path: Path) -> None:
    home = tmp_path / "home"
    async with three_workspaces(home) as three:
        for team in TEAMS:
            await use(three, team)
        await send_unreadable(three, f"http://127.0.0.1:{three.stack.port('gateway_http')}")
        await three.idle()
        mark = MARKS["North"]
        assert mark in str(three.rows()).lower()
        content = ("messages", "chunks", "chunk_terms", "vectors_384", "people", "channels")
        others = {team: three.rows_of(team, content) for team in TEAMS[1:]}
        assert all(rows["messages"] for rows in others.values())

        three.control.uninstall(team="North")
        await until(lambda: not three.rows_of("North", ("workspaces",))["workspaces"])
        await three.idle()

        left = three.rows()
        assert mark not in str(left).lower()
        team_id = three.control.find_team("North").team_id
        naming = {table for table, rows in left.items() if team_id in str(rows)}
        assert naming == {"purge_reports"}
        for team, rows in others.items():
            assert three.rows_of(team, content) == rows
            assert "Thursday" in await three.ask(team, f"ask when is the {MARKS[team]} window?")

    logs = [home / "postgres" / "postgres.log", *(home / "logs").iterdir()]
    assert len([path for path in logs if path.stat().st_size]) >= 7
    for path in logs:
        text = path.read_bytes().decode("utf-8", "replace").lower()
        for word in MARKS.values():
            assert word not in text, path.name
