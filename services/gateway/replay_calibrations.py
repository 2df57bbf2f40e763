"""Replays the labels of calibrations that are due, so that a threshold stays true while its corpus
changes. Several gateways may do it: a replay more only measures once more."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import structlog

from recall.gateway.v1 import admin_pb2
from recall.ingest.v1 import generations_pb2
from services.gateway.calibrate_generation import CALIBRATE_SECONDS, calibrate_generation
from services.gateway.clients import Stages, reach
from services.gateway.deadline import deadline_in
from services.runtime.background import running
from services.runtime.errors import CallError

LOOK_SECONDS = 60.0
LIST_SECONDS = 30.0

log = structlog.get_logger("calibrations")


async def replay_due(stages: Stages) -> int:
    """Replay everything that is due now; how many. Raises CallError when ingest can not say."""
    wanted = generations_pb2.ListDueReplaysRequest()
    reply = await reach("ingest", stages.generations.ListDueReplays, wanted, LIST_SECONDS)
    done = 0
    for due in reply.replays:
        try:
            await _replay(due, stages)
            done += 1
        except CallError as error:
            # The next look finds it due again.
            log.warning("replay failed", calibration_id=due.calibration_id, detail=error.message)
    return done


async def _replay(due: generations_pb2.DueReplay, stages: Stages) -> None:
    request = admin_pb2.CalibrateGenerationRequest(
        workspace_id=due.workspace_id,
        generation_id=due.generation_id,
        source=due.source,
        collection=due.collection,
        replayed_calibration_id=due.calibration_id,
    )
    deadline = deadline_in(time.monotonic, CALIBRATE_SECONDS)
    async for event in calibrate_generation(request, due.cause, stages, deadline):
        if isinstance(event, generations_pb2.Calibration):
            log.info(
                "calibration replayed",
                calibration_id=event.calibration_id,
                cause=due.cause,
                state=event.state,
            )


@asynccontextmanager
async def replaying(stages: Stages) -> AsyncIterator[None]:
    """Look every minute, for the length of a block."""
    async with running(_for_ever(stages)):
        yield


async def _for_ever(stages: Stages) -> None:
    while True:
        await asyncio.sleep(LOOK_SECONDS)
        try:
            await replay_due(stages)
        except CallError as error:
            log.warning("due replays unknown", detail=error.message)
