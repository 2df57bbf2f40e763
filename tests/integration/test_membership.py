"""Watchers hear of every change of membership once it is stored, and of every gap."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from recall.ingest.v1 import ingest_pb2
from services.ingest.watch_membership import (
    FORGET_EVERYTHING,
    MembershipChange,
    watch_membership,
)
from services.runtime.callers import Caller
from tests import builders as b
from tests import slack_events as s
from tests.integration.app_fixtures import App, install
from tests.integration.ingest_fixtures import Rows

EVERYBODY = Caller("operator", "t", frozenset({"*"}), frozenset({"*"}))


class Watcher:
    """One stream over gRPC, begun."""

    def __init__(self, app: App) -> None:
        self._call: Any = app.ingest.directory.WatchMembership(ingest_pb2.WatchMembershipRequest())

    async def next(self) -> tuple[str, str]:
        async with asyncio.timeout(30):
            change = await self._call.read()
        return change.workspace_id, change.person_id

    def cancel(self) -> None:
        self._call.cancel()


@pytest.fixture
async def watcher(app: App) -> Any:
    made = Watcher(app)
    assert await made.next() == ("", "")
    yield made
    made.cancel()


@pytest.mark.parametrize(
    ("event", "person"),
    [
        (s.member("joined", "U1", 1), "U1"),
        (s.member("left", "U1", 1), "U1"),
        ({"type": "user_change", "user": b.slack_user("U1", "Ada", deleted=True)}, "U1"),
        (s.about_channel("channel_left"), s.BOT_USER),
        ({"type": "app_uninstalled"}, ""),
    ],
    ids=["joined", "left", "deactivated", "the app left", "uninstalled"],
)
async def test_a_change_is_told(app: App, watcher: Watcher, event: b.Record, person: str) -> None:
    await app.happen(event)
    assert await watcher.next() == ("W", person)


async def test_what_is_told_is_stored_already(app: App, watcher: Watcher, rows: Rows) -> None:
    telling = asyncio.create_task(app.happen(s.member("joined", "U1", 1)))
    assert await watcher.next() == ("W", "U1")
    assert rows.all("SELECT person_id FROM channel_members") == [("U1",)]
    await telling


async def test_a_lost_connection_is_told_as_forget_everything(
    app: App, watcher: Watcher, rows: Rows
) -> None:
    rows.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE query = 'LISTEN recall_membership'"
    )
    assert await watcher.next() == ("", "")
    await app.happen(s.member("joined", "U1", 1))
    assert await watcher.next() == ("W", "U1")


async def test_a_watcher_hears_only_of_workspaces_it_may_read(app: App, rows: Rows) -> None:
    install(rows, "W2", "T0SECOND")
    caller = Caller("one", "t", frozenset({"W2"}), frozenset({"*"}))
    changes = watch_membership(app.resources, caller)
    assert await anext(changes) == FORGET_EVERYTHING
    await app.happen(s.member("joined", "U1", 1))
    await app.tell(s.member("joined", "U2", 1), team_id="T0SECOND")
    await app.work()
    async with asyncio.timeout(30):
        assert await anext(changes) == MembershipChange("W2", "U2")
    await changes.aclose()  # type: ignore[attr-defined]


async def test_a_stream_ends_when_its_server_stops(app: App) -> None:
    changes = watch_membership(app.resources, EVERYBODY)
    assert await anext(changes) == FORGET_EVERYTHING
    app.resources.wakeups.close()
    async with asyncio.timeout(30):
        assert [change async for change in changes] == []
