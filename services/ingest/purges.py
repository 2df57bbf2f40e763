"""Asking for a purge: its report, its job, and what ends at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from services.ingest.membership import tell
from services.ingest.queue import NewJob, enqueue
from services.runtime import db, sql
from services.runtime.errors import not_found

WORKSPACE_SCOPE = "workspace"

_STATEMENTS = sql.load("services.ingest", "purge.sql")


@dataclass(frozen=True)
class PurgeReport:
    """What a purge deleted, by table. ``channel_id`` is empty for a whole workspace;
    ``is_given_up``: its job is dead."""

    scope: str
    channel_id: str
    deleted: Mapping[str, int]
    requested_at: datetime
    finished_at: datetime | None
    is_given_up: bool = False


def channel_scope(channel_id: str) -> str:
    """The scope of a channel's purge, as its report shows it."""
    return f"channel {channel_id}"


async def request_workspace_purge(
    connection: db.Connection, workspace_id: str, purge_id: str = ""
) -> str:
    """Ask for the purge of a whole workspace; returns the id of the purge that is under way.

    A request that may come twice gives its own id; without one, a new one is made. The
    installation and its tokens go in this transaction, so that no later event is recorded and
    nobody gets the token any more.
    """
    await connection.execute(_STATEMENTS["forget_installations"], {"workspace_id": workspace_id})
    await tell(connection, workspace_id)
    return await _request(connection, workspace_id, purge_id, "", "")


async def request_channel_purge(
    connection: db.Connection,
    workspace_id: str,
    channel_id: str,
    purge_id: str = "",
    hold_ts: str = "",
) -> str:
    """Ask for the purge of one channel; returns the id of the purge that is under way.

    Messages up to ``hold_ts``, by default up to the newest stored one, do not come back by an
    event or by history until the app joins the channel anew.
    """
    key = {"workspace_id": workspace_id, "channel_id": channel_id}
    if not hold_ts:
        row = await db.fetch_one(connection, _STATEMENTS["newest_ts"], key)
        hold_ts = row[0] if row else ""
    return await _request(connection, workspace_id, purge_id, channel_id, hold_ts)


async def lift_holds(
    connection: db.Connection, workspace_id: str, channel_id: str, joined_ts: str = ""
) -> None:
    """The app joined the channel at ``joined_ts``, or somebody asked for its history: purges
    before that keep nothing out any more."""
    await connection.execute(
        _STATEMENTS["lift_holds"],
        {"workspace_id": workspace_id, "channel_id": channel_id, "joined_ts": joined_ts},
    )


async def read_hold(connection: db.Connection, workspace_id: str, channel_id: str) -> str:
    """The ts up to which purges keep a channel's messages out; empty when none does."""
    key = {"workspace_id": workspace_id, "channel_id": channel_id}
    row = await db.fetch_one(connection, _STATEMENTS["read_hold"], key)
    return (row[0] or "") if row else ""


async def read_report(connection: db.Connection, workspace_id: str, purge_id: str) -> PurgeReport:
    """A purge's report. Raises CallError NOT_FOUND."""
    key = {"workspace_id": workspace_id, "purge_id": purge_id}
    row = await db.fetch_one(connection, _STATEMENTS["read_report"], key)
    if row is None:
        raise not_found(f"There is no purge {purge_id!r} of workspace {workspace_id!r}.")
    return PurgeReport(*row)


async def is_known(connection: db.Connection, workspace_id: str, purge_id: str) -> bool:
    """Whether a purge was asked for under this id."""
    key = {"workspace_id": workspace_id, "purge_id": purge_id}
    return await db.fetch_one(connection, _STATEMENTS["read_report"], key) is not None


async def open_workspace_purge(connection: db.Connection, workspace_id: str) -> str:
    """The id of the workspace's purge that is not finished; empty when there is none."""
    row = await db.fetch_one(
        connection, _STATEMENTS["open_workspace_purge"], {"workspace_id": workspace_id}
    )
    return row[0] if row else ""


async def _request(
    connection: db.Connection, workspace_id: str, purge_id: str, channel_id: str, hold_ts: str
) -> str:
    report = {
        "workspace_id": workspace_id,
        "purge_id": purge_id,
        "scope": channel_scope(channel_id) if channel_id else WORKSPACE_SCOPE,
        "channel_id": channel_id,
        "hold_ts": hold_ts,
    }
    opened = await db.fetch_one(connection, _STATEMENTS["open_report"], report)
    if opened is None:
        known = await db.fetch_one(connection, _STATEMENTS["join_open_report"], report)
        return known[0] if known else purge_id
    opened_id: str = opened[0]
    payload = {"purge_id": opened_id, "channel_id": channel_id}
    await enqueue(connection, workspace_id, NewJob("purge", opened_id, payload))
    return opened_id
