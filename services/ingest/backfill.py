"""The job "backfill": takes up a channel, lists a workspace, or reads the pages that are due."""

from __future__ import annotations

from services.ingest.backfill_jobs import READING, come_back
from services.ingest.history_run import Backfill, Later, Run
from services.ingest.list_slack import list_slack, place_of
from services.ingest.queue import Job
from services.ingest.read_history import read_history
from services.ingest.take_up_channel import take_up_channel
from services.runtime import db


async def handle_backfill(backfill: Backfill, job: Job) -> None:
    """Do a bounded part and come back for the rest. Without an installed app there is none."""
    slack = await backfill.open_slack(job.workspace_id)
    if slack is None:
        return
    later = await _work(Run(backfill, job, slack))
    if later is not None:
        async with db.writing(backfill.resources.pool, job.workspace_id) as connection:
            await come_back(connection, job, later.delay_seconds, later.payload)


async def _work(run: Run) -> Later | None:
    payload = run.job.payload
    if "channel_id" in payload:
        return await take_up_channel(run, payload["channel_id"])
    if payload.get("task") == READING["task"]:
        return await read_history(run)
    return await list_slack(run, place_of(payload))
