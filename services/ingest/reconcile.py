"""Asks for what is due by time: complete channels to be read again, and listings.

Within the last days the second reading finds what no event told: messages, edits, late replies and
deletions. It is due a day after the last one, and after processes were restarted.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Coroutine

import psycopg
import psycopg_pool

from services.ingest.backfill_jobs import (
    ask_for_listing,
    ask_for_listing_if_due,
    ask_for_reading,
)
from services.ingest.channel_history import (
    RECONCILE_GAP_MINUTES,
    RECONCILE_HOURS,
    Channels,
)
from services.ingest.pacing import Clock, database_clock
from services.ingest.resources import Resources
from services.runtime import db, sql

INTERVAL_SECONDS = 60.0

_STATEMENTS = sql.load("services.ingest", "reconcile.sql")


async def reconcile(resources: Resources) -> None:
    """Once for the restart, then every minute, until cancelled. Any number of processes may."""
    await _unless_away(reconcile_after_restart(resources))
    while True:
        await _unless_away(ask_for_what_is_due(resources))
        await asyncio.sleep(INTERVAL_SECONDS)


async def reconcile_after_restart(resources: Resources, now: Clock = database_clock) -> None:
    """Events may have been missed: what they told of is looked for."""
    async with db.across_tenants(resources.queue_pool) as connection:
        rows = await db.fetch_all(connection, _STATEMENTS["installed"], {})
    for (workspace_id,) in rows:
        async with db.writing(resources.pool, workspace_id) as connection:
            await look_for_what_was_missed(Channels(connection, workspace_id, now()))


async def look_for_what_was_missed(channels: Channels) -> int:
    """Have every complete channel read again, and the channels listed; how many are known.

    A channel that was read again minutes ago is due when ten are over; a listing is not repeated
    so soon.
    """
    count = await channels.reconcile_soon()
    await ask_for_listing_if_due(
        channels.connection, channels.workspace_id, RECONCILE_GAP_MINUTES, channels.now
    )
    await ask_for_reading(channels.connection, channels.workspace_id)
    return count


async def ask_for_what_is_due(resources: Resources, now: Clock = database_clock) -> None:
    """Ask for the reading and listing of each workspace where something is due."""
    async with db.across_tenants(resources.queue_pool) as connection:
        rows = await db.fetch_all(
            connection, _STATEMENTS["due"], {"now": now(), "hours": RECONCILE_HOURS}
        )
    for workspace_id, is_reading_due, is_listing_due in rows:
        async with db.writing(resources.pool, workspace_id) as connection:
            if is_reading_due:
                await ask_for_reading(connection, workspace_id)
            if is_listing_due:
                await ask_for_listing(connection, workspace_id)


async def _unless_away(work: Coroutine[None, None, None]) -> None:
    with contextlib.suppress(psycopg.OperationalError, psycopg_pool.PoolTimeout):
        await work
