"""CalibrateGeneration: search every labelled question in one generation, have ingest certify.

The threshold is fitted on the very numbers that retrieve serves.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence

from recall.corpus.v1 import corpus_pb2
from recall.gateway.v1 import admin_pb2
from recall.ingest.v1 import generations_pb2, ingest_pb2
from recall.retrieve.v1 import retrieve_pb2
from services.gateway.clients import Stages, reach
from services.gateway.deadline import Deadline
from services.runtime.errors import invalid

CALIBRATE_SECONDS = 3600.0
READ_SECONDS = 30.0
FIT_SECONDS = 600.0
SEARCH_SECONDS = 30.0
EVIDENCE_LIMIT = 12
# Searches at a time: questions of people come first.
SEARCHES = 2
PROGRESS_EVERY = 20

Event = admin_pb2.CalibrateProgress | generations_pb2.Calibration


async def calibrate_generation(
    request: admin_pb2.CalibrateGenerationRequest, cause: str, stages: Stages, deadline: Deadline
) -> AsyncGenerator[Event, None]:
    """Progress, then the calibration: published, or rejected with its reason.

    Raises CallError as both stages do, INVALID_ARGUMENT without labels.
    """
    labels = await _labels(request, stages, deadline)
    context = await _context(request, stages, deadline)
    generation_id = request.generation_id or await _serving(context, stages, deadline)
    record = generations_pb2.RecordCalibrationRequest(
        workspace_id=request.workspace_id,
        generation_id=generation_id,
        rule=request.rule,
        replayed_calibration_id=request.replayed_calibration_id,
        cause=cause,
    )
    pin = corpus_pb2.Pin(generation_id=generation_id)
    yield admin_pb2.CalibrateProgress(searched=0, total=len(labels))
    for start in range(0, len(labels), PROGRESS_EVERY):
        part = labels[start : start + PROGRESS_EVERY]
        record.samples.extend(await _samples(part, context, pin, stages, deadline))
        yield admin_pb2.CalibrateProgress(searched=start + len(part), total=len(labels))
    seconds = deadline.share(FIT_SECONDS)
    reply = await reach("ingest", stages.generations.RecordCalibration, record, seconds)
    yield reply.calibration


async def _labels(
    request: admin_pb2.CalibrateGenerationRequest, stages: Stages, deadline: Deadline
) -> Sequence[generations_pb2.Label]:
    if request.labels:
        return request.labels
    if not request.from_feedback and not request.replayed_calibration_id:
        raise invalid("labels", "must hold labelled questions, or set from_feedback")
    wanted = generations_pb2.GetLabelsRequest(
        workspace_id=request.workspace_id,
        calibration_id="" if request.from_feedback else request.replayed_calibration_id,
    )
    seconds = deadline.share(READ_SECONDS)
    found = (await reach("ingest", stages.generations.GetLabels, wanted, seconds)).labels
    if not found:
        raise invalid("from_feedback", "finds nothing: nobody has judged an answer yet")
    return found


async def _context(
    request: admin_pb2.CalibrateGenerationRequest, stages: Stages, deadline: Deadline
) -> corpus_pb2.QueryContext:
    """Everything of the workspace, or the one collection."""
    channel_ids = [request.collection]
    if not request.collection:
        wanted = ingest_pb2.ListChannelsRequest(workspace_id=request.workspace_id)
        seconds = deadline.share(READ_SECONDS)
        reply = await reach("ingest", stages.directory.ListChannels, wanted, seconds)
        channel_ids = [channel.channel_id for channel in reply.channels]
    return corpus_pb2.QueryContext(
        source=request.source, workspace_id=request.workspace_id, channel_ids=channel_ids
    )


async def _serving(context: corpus_pb2.QueryContext, stages: Stages, deadline: Deadline) -> str:
    wanted = retrieve_pb2.ResolvePinRequest(context=context)
    seconds = deadline.share(READ_SECONDS)
    reply = await reach("retrieve", stages.retriever.ResolvePin, wanted, seconds)
    return reply.pin.generation_id


async def _samples(
    labels: Sequence[generations_pb2.Label],
    context: corpus_pb2.QueryContext,
    pin: corpus_pb2.Pin,
    stages: Stages,
    deadline: Deadline,
) -> list[generations_pb2.Sample]:
    turns = asyncio.Semaphore(SEARCHES)

    async def sample(label: generations_pb2.Label) -> generations_pb2.Sample:
        wanted = retrieve_pb2.SearchRequest(
            context=context,
            question=label.question,
            pin=pin,
            limit=EVIDENCE_LIMIT,
            trust_mode=corpus_pb2.TRUST_MODE_RELAXED,
            with_signals=True,
            may_be_unserved=True,
        )
        async with turns:
            seconds = deadline.share(SEARCH_SECONDS)
            found = await reach("retrieve", stages.retriever.Search, wanted, seconds)
        return generations_pb2.Sample(label=label, question_signals=found.question_signals)

    return await asyncio.gather(*(sample(label) for label in labels))
