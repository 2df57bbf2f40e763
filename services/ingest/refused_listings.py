"""What follows when Slack does not describe people or channels."""

from __future__ import annotations

from collections.abc import Mapping

import grpc

from recall.error.v1 import error_pb2
from services.ingest.history_run import Later, Run
from services.ingest.slack_history import Refusal, Remedy
from services.runtime.errors import CallError


async def after_refusal(
    run: Run, method: str, refusal: Refusal, payload: Mapping[str, object]
) -> Later | None:
    """When to go on with a payload; None when nothing can be read any more.

    Raises CallError for what only another try can mend: the job is counted and tried again.
    """
    async with run.storing() as rows:
        if rows is None:
            return None
        if refusal.remedy is Remedy.STOP:
            await rows.channels.stop_all(refusal.error)
            return None
        if refusal.remedy is Remedy.WAIT:
            jitter = run.backfill.resources.jitter()
            await rows.slots.hold_off(method, refusal.retry_after_seconds, jitter)
            return Later(await rows.slots.wait_seconds(method), payload)
    raise CallError(
        grpc.StatusCode.ABORTED,
        error_pb2.ERROR_REASON_STAGE_UNAVAILABLE,
        f"Slack refused {method}: {refusal.error}.",
    )
