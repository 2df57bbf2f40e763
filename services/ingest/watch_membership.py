"""WatchMembership: who changed channels, told when it is committed."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass

import psycopg
from psycopg.conninfo import make_conninfo

from services.ingest.membership import CHANNEL
from services.ingest.resources import Resources
from services.runtime import db
from services.runtime.callers import Caller

RECONNECT_SECONDS = 2.0
# How often a stream looks whether its server stops.
LOOK_SECONDS = 1.0
# A connection that died without a word is noticed within this.
_KEEPALIVE = {"keepalives_idle": "10", "keepalives_interval": "5", "keepalives_count": "2"}


@dataclass(frozen=True)
class MembershipChange:
    """Empty ids stand for everybody: of the workspace, or of all workspaces."""

    workspace_id: str = ""
    person_id: str = ""


FORGET_EVERYTHING = MembershipChange()


async def watch_membership(resources: Resources, caller: Caller) -> AsyncIterator[MembershipChange]:
    """Changes in the workspaces that the caller may read, until the server stops.

    The first is always "forget everything", sent once nothing is missed any more, and so is the
    first after a time without the database.
    """
    while not resources.wakeups.is_closed:
        with contextlib.suppress(psycopg.Error):
            async for change in _changes(resources):
                if not change.workspace_id or caller.may_read_workspace(change.workspace_id):
                    yield change
        if not resources.wakeups.is_closed:
            await asyncio.sleep(RECONNECT_SECONDS)


async def _changes(resources: Resources) -> AsyncIterator[MembershipChange]:
    """The changes of one connection, ended by its loss or by the server's stop."""
    url = resources.pool.conninfo
    assert isinstance(url, str), "pools are opened by URL"
    async with await psycopg.AsyncConnection.connect(
        make_conninfo(url, **_KEEPALIVE), autocommit=True, connect_timeout=db.CONNECT_SECONDS
    ) as connection:
        await connection.execute(b"LISTEN " + CHANNEL.encode())
        yield FORGET_EVERYTHING
        while not resources.wakeups.is_closed:
            async for notification in connection.notifies(timeout=LOOK_SECONDS):
                yield MembershipChange(**json.loads(notification.payload))
