"""One page of a channel: its messages, its threads and its checkpoint in one transaction."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime

from services.corpus import slack_message_id
from services.ingest.blocks import Json
from services.ingest.channel_history import RECENT, ChannelReading
from services.ingest.delete_messages import delete_messages
from services.ingest.gone_messages import Shown, gone_from_channel
from services.ingest.history_pages import Root, highest, is_past, lowest, roots_of, shown_ts
from services.ingest.history_run import Rows, Run
from services.ingest.import_batch import open_scope
from services.ingest.known_channels import read_channel
from services.ingest.listing import ChannelRow
from services.ingest.live_messages import write_live_messages
from services.ingest.refused_pages import record_refusal, usable
from services.ingest.slack_history import Page, Refusal, Span
from services.ingest.workspaces import read_workspace


async def read_channel_page(
    run: Run, channel: ChannelReading, span: Span, asked_at: datetime
) -> None:
    """Ask for a page, then store it unless somebody moved the channel meanwhile."""
    sent = run.backfill.monotonic()
    answer = usable(await run.slack.read_messages(channel.channel_id, span))
    async with run.storing() as rows:
        if rows is None or not await rows.channels.holds(channel):
            return
        await rows.slots.called(rows.channels.method, run.backfill.monotonic() - sent)
        if isinstance(answer, Refusal):
            await record_refusal(run, rows, rows.channels, channel, answer)
        else:
            await _move(rows, channel, answer)
            await _store(run, rows, channel, answer, asked_at)


async def _move(rows: Rows, channel: ChannelReading, page: Page) -> None:
    """The checkpoint; a pass ends with Slack's last page, or past what it was to read."""
    down_to_ts = lowest([channel.read_down_to_ts, *shown_ts(page.rows)])
    await rows.slots.admit(rows.channels.method)
    await rows.channels.move(channel, page.next_cursor, down_to_ts, len(page.rows))
    if not page.has_more or is_past(down_to_ts, channel.oldest_ts):
        await rows.channels.end_pass(channel)


async def _store(
    run: Run, rows: Rows, channel: ChannelReading, page: Page, asked_at: datetime
) -> None:
    connection = rows.connection
    workspace = await read_workspace(connection, run.workspace_id)
    known = await read_channel(connection, run.workspace_id, channel.channel_id)
    assert known is not None, "a channel goes with its history"
    gone = await _gone(rows, channel, page, asked_at)
    roots = [*roots_of(page.rows), *(Root(ts, 0, "") for _, ts in gone)]
    prefix = slack_message_id(workspace.team_id, channel.channel_id, "")
    await rows.threads.expect(channel, prefix, roots)
    scope = await open_scope(connection, workspace, run.backfill.resources)
    await delete_messages(scope, [message_id for message_id, _ in gone])
    await write_live_messages(scope, workspace, as_records(known, page.rows))


async def _gone(
    rows: Rows, channel: ChannelReading, page: Page, asked_at: datetime
) -> list[tuple[str, str]]:
    """Messages that were deleted: those between what the page, and the one before, show.

    Only what is recent is judged: there everything stored came from Slack's own events and pages.
    """
    shown = shown_ts(page.rows)
    if channel.open_pass != RECENT or not shown:
        return []
    above_ts = highest([lowest(shown), channel.oldest_ts])
    stretch = Shown(above_ts, channel.read_down_to_ts, shown, asked_at)
    return await gone_from_channel(
        rows.connection, rows.channels.workspace_id, channel.channel_id, stretch
    )


def as_records(channel: ChannelRow, rows: Iterable[Json]) -> list[tuple[ChannelRow, bytes]]:
    """Rows of a channel as the reader of records takes them."""
    return [(channel, json.dumps(row).encode()) for row in rows]
