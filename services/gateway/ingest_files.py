"""Files of a collection change: build, validate, replay the labels, promote; or say what is left.

The generation that serves goes on serving until the new one may take over.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass

import grpc

from recall.corpus.v1 import corpus_pb2
from recall.error.v1 import error_pb2
from recall.gateway.v1 import admin_pb2
from recall.ingest.v1 import documents_pb2, generations_pb2
from services.document_build import DocumentBuild, send_documents
from services.gateway.calibrate_generation import calibrate_generation
from services.gateway.changed_manifest import changed, stored
from services.gateway.clients import Stages, reach, stage_error
from services.gateway.deadline import Deadline
from services.gateway.validate_generation import validate_generation
from services.runtime.errors import CallError, from_rpc_error, invalid

INGEST_SECONDS = 600.0
READ_SECONDS = 30.0
POLL_SECONDS = 0.5
PUBLISHED = "published"
REBUILT = "rebuilt"

_NOT_READY = error_pb2.ERROR_REASON_GENERATION_NOT_READY
_UNCERTIFIED = error_pb2.ERROR_REASON_CALIBRATION_UNCERTIFIED


@dataclass(frozen=True)
class Files:
    """What changes in a collection: contents by path, and paths that go."""

    workspace_id: str
    collection: str
    contents: Mapping[str, bytes]
    removed: Sequence[str]
    actor: str


@dataclass(frozen=True)
class Ingested:
    """What became of it. ``state`` is the new generation's: "active", "ready" when it may not serve
    yet, "failed"; ``reason`` says why it is not active."""

    generation_id: str
    state: str
    reason: str
    carried: int = 0
    read: int = 0
    problems: tuple[str, ...] = ()


async def ingest_files(files: Files, stages: Stages, deadline: Deadline) -> Ingested:
    """Change a collection through the generation manager.

    Raises CallError as the stages do: CONCURRENT_CHANGE while somebody else builds the collection,
    INVALID_ARGUMENT for what can not be built.
    """
    serving = await _serving(files, stages, deadline)
    manifest, contents = changed(files.collection, serving.sources, files.contents, files.removed)
    if not manifest.objects:
        raise invalid("files", "a collection must hold at least one document")
    if serving.generation_id and tuple(map(stored, serving.sources)) == manifest.objects:
        return Ingested(serving.generation_id, "active", "", carried=len(manifest.objects))
    build = DocumentBuild(files.workspace_id, manifest)
    report = await _build(build, contents, stages, deadline)
    built = report.generation.generation_id
    state, reason = await _take_over(files, serving.generation_id, built, stages, deadline)
    return Ingested(
        built,
        state,
        reason,
        report.counts.carried,
        report.counts.read,
        tuple(_problem(each) for each in report.problems),
    )


async def _take_over(
    files: Files, parent: str, built: str, stages: Stages, deadline: Deadline
) -> tuple[str, str]:
    """Validate, replay and promote; the state that was reached, and why no further one was."""
    faults = await _validated(files, built, stages, deadline)
    if faults:
        return "failed", " ".join(faults)
    published = await _published(files, parent, stages, deadline) if parent else ""
    if published:
        replayed = await _replayed(files, built, published, stages, deadline)
        if replayed.state != PUBLISHED:
            return "ready", f"The replayed labels do not certify it: {replayed.reason}"
    return await _promoted(files, built, stages, deadline)


async def _serving(
    files: Files, stages: Stages, deadline: Deadline
) -> documents_pb2.ListSourcesResponse:
    request = documents_pb2.ListSourcesRequest(
        workspace_id=files.workspace_id, collection=files.collection
    )
    seconds = deadline.share(READ_SECONDS)
    return await reach("ingest", stages.ingester.ListSources, request, seconds)


async def _build(
    build: DocumentBuild, contents: Mapping[str, bytes], stages: Stages, deadline: Deadline
) -> documents_pb2.DocumentsReport:
    """Send what is asked for. Raises CallError when that is more than was given."""
    report = documents_pb2.DocumentsReport()
    seconds = deadline.left()
    try:
        replies = send_documents(stages.ingester, build, contents.__getitem__, seconds)
        async with aclosing(replies):
            async for reply in replies:
                if reply.HasField("wanted"):
                    _require_given(reply.wanted.uris, contents)
                elif reply.HasField("report"):
                    report = reply.report
    except grpc.RpcError as error:
        raise stage_error("ingest", from_rpc_error(error), seconds) from None
    return report


def _require_given(wanted: Sequence[str], contents: Mapping[str, bytes]) -> None:
    missing = [uri for uri in wanted if uri not in contents]
    if missing:
        raise CallError(
            grpc.StatusCode.FAILED_PRECONDITION,
            error_pb2.ERROR_REASON_INVALID_REQUEST,
            f"{len(missing)} documents of the collection must be read again, such as {missing[0]}: "
            "it was built with another pipeline. Build it with `recall documents build`.",
        )


async def _validated(files: Files, built: str, stages: Stages, deadline: Deadline) -> Sequence[str]:
    """Wait for the vectors, then have it read back and searched; its faults."""
    while True:
        try:
            checked = await validate_generation(
                stages, files.workspace_id, built, files.actor, deadline
            )
            return checked.faults
        except CallError as error:
            if error.reason != _NOT_READY:
                raise
            await asyncio.sleep(min(POLL_SECONDS, deadline.left()))


async def _published(files: Files, parent: str, stages: Stages, deadline: Deadline) -> str:
    """The calibration that certifies the serving generation; empty without one."""
    request = generations_pb2.ListCalibrationsRequest(
        workspace_id=files.workspace_id, generation_id=parent
    )
    seconds = deadline.share(READ_SECONDS)
    reply = await reach("ingest", stages.generations.ListCalibrations, request, seconds)
    states = {each.state: each.calibration_id for each in reply.calibrations}
    return states.get(PUBLISHED, "")


async def _replayed(
    files: Files, built: str, calibration_id: str, stages: Stages, deadline: Deadline
) -> generations_pb2.Calibration:
    request = admin_pb2.CalibrateGenerationRequest(
        workspace_id=files.workspace_id,
        generation_id=built,
        source=corpus_pb2.SOURCE_DOCUMENT,
        collection=files.collection,
        replayed_calibration_id=calibration_id,
    )
    events = [event async for event in calibrate_generation(request, REBUILT, stages, deadline)]
    last = events[-1]
    assert isinstance(last, generations_pb2.Calibration)
    return last


async def _promoted(
    files: Files, built: str, stages: Stages, deadline: Deadline
) -> tuple[str, str]:
    """Promote. Without a certificate only outside of production, flagged and audited."""
    request = generations_pb2.PromoteGenerationRequest(
        workspace_id=files.workspace_id, generation_id=built, actor=files.actor
    )
    for uncertified in (False, True):
        request.uncertified = uncertified
        try:
            seconds = deadline.share(READ_SECONDS)
            await reach("ingest", stages.generations.PromoteGeneration, request, seconds)
            return "active", ""
        except CallError as error:
            if error.reason != _UNCERTIFIED:
                raise
            reason = error.message
    return "ready", reason


def _problem(each: documents_pb2.DocumentProblem) -> str:
    where = f"{each.uri}:{each.line}" if each.line else each.uri
    return f"{where}: {each.message}"
