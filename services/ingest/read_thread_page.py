"""One page of a thread: its replies and its checkpoint in one transaction."""

from __future__ import annotations

from datetime import datetime

from services.corpus import slack_message_id
from services.ingest.delete_messages import delete_messages
from services.ingest.gone_messages import Shown, gone_from_thread
from services.ingest.history_pages import highest, shown_ts, without_root
from services.ingest.history_run import Rows, Run
from services.ingest.import_batch import open_scope
from services.ingest.known_channels import read_channel
from services.ingest.live_messages import write_live_messages
from services.ingest.read_channel_page import as_records
from services.ingest.refused_pages import record_refusal, usable
from services.ingest.slack_history import Page, Remedy, Span
from services.ingest.thread_history import ThreadReading
from services.ingest.workspaces import read_workspace

# A thread without its root has no replies left.
_NO_REPLIES = Page((), False)


async def read_thread_page(run: Run, thread: ThreadReading, span: Span, asked_at: datetime) -> None:
    """Ask for a page, then store it unless somebody moved the thread meanwhile."""
    sent = run.backfill.monotonic()
    asked = await run.slack.read_replies(thread.channel_id, thread.root_ts, span)
    answer = usable(asked, thread.root_ts)
    async with run.storing() as rows:
        if rows is None or not await rows.threads.holds(thread):
            return
        await rows.slots.called(rows.threads.method, run.backfill.monotonic() - sent)
        if isinstance(answer, Page):
            await _store(run, rows, thread, answer, asked_at)
        elif answer.remedy is Remedy.FORGET:
            await _store(run, rows, thread, _NO_REPLIES, asked_at)
        else:
            await record_refusal(run, rows, rows.threads, thread, answer)


async def _store(
    run: Run, rows: Rows, thread: ThreadReading, page: Page, asked_at: datetime
) -> None:
    """The root is left out: it is stored with its channel's page."""
    replies = without_root(page.rows, thread.root_ts)
    shown = shown_ts(replies)
    up_to_ts = highest([thread.read_up_to_ts, *shown])
    await rows.slots.admit(rows.threads.method)
    await rows.threads.move(thread, page.next_cursor, up_to_ts)
    if not page.has_more:
        await rows.threads.end(thread)
    workspace = await read_workspace(rows.connection, run.workspace_id)
    known = await read_channel(rows.connection, run.workspace_id, thread.channel_id)
    assert known is not None, "a channel goes with its threads"
    scope = await open_scope(rows.connection, workspace, run.backfill.resources)
    if thread.is_again:
        root_id = slack_message_id(workspace.team_id, thread.channel_id, thread.root_ts)
        below_ts = up_to_ts if page.has_more else ""
        stretch = Shown(thread.read_up_to_ts, below_ts, shown, asked_at)
        gone = await gone_from_thread(rows.connection, run.workspace_id, root_id, stretch)
        await delete_messages(scope, gone)
    await write_live_messages(scope, workspace, as_records(known, replies))
