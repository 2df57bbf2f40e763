"""Reads the next pages of a workspace: of channels newest first, of their threads beside them.

Each page is chosen and its slot reserved in one short transaction, waited for and asked of Slack
in none, and stored with its checkpoint in another. A run ends after some pages, or when the next
slot is far away: then the job comes back at that time.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from services.ingest.backfill_jobs import READING
from services.ingest.channel_history import FULL, ChannelReading
from services.ingest.history_run import PATIENCE_SECONDS, Later, Rows, Run
from services.ingest.pacing import HISTORY, REPLIES
from services.ingest.read_channel_page import read_channel_page
from services.ingest.read_thread_page import read_thread_page
from services.ingest.slack_history import Span
from services.ingest.thread_history import ThreadReading
from services.runtime import db

# Then other workspaces have their turn.
PAGES_A_RUN = 10
# What is not due yet is not looked at again sooner.
LOOK_SECONDS = 1.0

_NOW = b"SELECT coalesce(%(now)s::timestamptz, now())"


@dataclass(frozen=True)
class Step:
    """A page to read: of a channel or of a thread, when its slot comes."""

    due: ChannelReading | ThreadReading
    span: Span
    wait_seconds: float
    # Slack's answer shows what was there then, or later.
    asked_at: datetime


async def read_history(run: Run) -> Later | None:
    """Read some pages; when to go on, None when nothing is left or the claim is lost."""
    for _ in range(PAGES_A_RUN):
        async with run.looking() as rows:
            step = await _next_step(rows) if rows else None
        if not isinstance(step, Step):
            return step
        await run.backfill.sleep(step.wait_seconds)
        if isinstance(step.due, ChannelReading):
            await read_channel_page(run, step.due, step.span, step.asked_at)
        else:
            await read_thread_page(run, step.due, step.span, step.asked_at)
    return Later(0.0, READING)


async def _next_step(rows: Rows) -> Step | Later | None:
    """The next page, its slot reserved; else when there is one."""
    due = await _due(rows)
    if not due:
        seconds = await rows.threads.seconds_to_next()
        return None if seconds is None else Later(max(LOOK_SECONDS, seconds), READING)
    waits = {method: await rows.slots.wait_seconds(method) for method in due}
    method = min(waits, key=lambda name: waits[name])
    wait_seconds = await rows.slots.reserve(method, PATIENCE_SECONDS)
    if wait_seconds is None:
        return Later(waits[method], READING)
    row = await db.fetch_one(rows.connection, _NOW, {"now": rows.slots.now})
    assert row is not None
    span = _span(due[method], rows.slots.pace.page_size)
    return Step(due[method], span, wait_seconds, row[0])


async def _due(rows: Rows) -> dict[str, ChannelReading | ThreadReading]:
    """What is to be read next by each method."""
    due: dict[str, ChannelReading | ThreadReading] = {}
    if channel := await rows.channels.next():
        due[HISTORY] = channel
    if thread := await rows.threads.next():
        due[REPLIES] = thread
    return due


def _span(due: ChannelReading | ThreadReading, page_size: int) -> Span:
    if isinstance(due, ThreadReading):
        return Span(page_size, due.cursor, oldest_ts=due.oldest_ts)
    # A pass over what is recent shows at least one page, so that an empty one tells nothing.
    oldest_ts = due.oldest_ts if due.open_pass == FULL else ""
    return Span(page_size, due.cursor, due.latest_ts, oldest_ts)
