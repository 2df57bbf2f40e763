"""Proto to values and values to proto, for the ingest service."""

from __future__ import annotations

from collections.abc import AsyncIterator

from google.protobuf.timestamp_pb2 import Timestamp

from recall.ingest.v1 import ingest_pb2
from services.corpus import source_from_proto, source_to_proto, timestamp
from services.ingest.get_coverage import ChannelCoverage, Coverage
from services.ingest.history_coverage import ChannelHistory
from services.ingest.import_parts import Entries, Header, LeftOut, Part, Records
from services.ingest.listing import ChannelRow, DirectoryFile
from services.ingest.tally import Report, Tally
from services.ingest.workspaces import Workspace
from services.runtime.errors import invalid

_FILES = {
    ingest_pb2.DIRECTORY_KIND_USERS: DirectoryFile.USERS,
    ingest_pb2.DIRECTORY_KIND_CHANNELS: DirectoryFile.CHANNELS,
    ingest_pb2.DIRECTORY_KIND_GROUPS: DirectoryFile.GROUPS,
    ingest_pb2.DIRECTORY_KIND_DMS: DirectoryFile.DMS,
    ingest_pb2.DIRECTORY_KIND_MPIMS: DirectoryFile.MPIMS,
}
_CHANNEL_KINDS = {
    "public": ingest_pb2.CHANNEL_KIND_PUBLIC,
    "private": ingest_pb2.CHANNEL_KIND_PRIVATE,
    "direct": ingest_pb2.CHANNEL_KIND_DIRECT,
    "group_direct": ingest_pb2.CHANNEL_KIND_GROUP_DIRECT,
}
_IMPORTED_SOURCES = ("slack", "synthetic")


async def parts_of(
    requests: AsyncIterator[ingest_pb2.ImportMessagesRequest],
) -> AsyncIterator[Part]:
    """The parts of an import as they arrive. Raises CallError INVALID_ARGUMENT."""
    async for request in requests:
        yield _part(request)


def _part(request: ingest_pb2.ImportMessagesRequest) -> Part:
    match request.WhichOneof("part"):
        case "header":
            return _header(request.header)
        case "directory":
            return _entries(request.directory)
        case "messages":
            messages = request.messages
            return Records(messages.channel_name, messages.file_name, messages.records_json)
        case "skipped_file":
            return LeftOut(request.skipped_file.file_name, request.skipped_file.reason)
        case _:
            raise invalid("part", "must be set")


def _header(header: ingest_pb2.ImportHeader) -> Header:
    source = source_from_proto(header.source)
    if source is None or source not in _IMPORTED_SOURCES:
        raise invalid("header.source", "must be SOURCE_SLACK or SOURCE_SYNTHETIC")
    return Header(
        source=source,
        workspace_id=header.workspace_id,
        default_workspace_id=header.default_workspace_id,
        team_id=header.team_id,
        embedder=header.embedder,
        skip_bots=header.skip_bots if header.HasField("skip_bots") else None,
    )


def _entries(directory: ingest_pb2.DirectoryRecords) -> Entries:
    if directory.kind not in _FILES:
        raise invalid("directory.kind", "must name a directory file")
    return Entries(_FILES[directory.kind], directory.records_json)


def import_event(event: Tally | Report) -> ingest_pb2.ImportMessagesResponse:
    """Progress, or the report."""
    if isinstance(event, Tally):
        return ingest_pb2.ImportMessagesResponse(progress=_counts(event))
    return ingest_pb2.ImportMessagesResponse(
        report=ingest_pb2.ImportReport(
            workspace_id=event.workspace_id,
            generation_id=event.generation_id,
            generation_created=event.generation_created,
            counts=_counts(event.tally),
            empty_channels=event.empty_channels,
            unknown_authors=sorted(event.tally.unknown_authors),
            notes=event.notes,
            chunks_without_vector=event.chunks_without_vector,
        )
    )


def _counts(tally: Tally) -> ingest_pb2.ImportCounts:
    return ingest_pb2.ImportCounts(
        received=tally.received,
        imported=tally.imported,
        unchanged=tally.unchanged,
        updated=tally.updated,
        deleted=tally.deleted,
        skipped=dict(tally.skipped),
        chunks_written=tally.chunks_written,
    )


def coverage(found: Coverage) -> ingest_pb2.GetCoverageResponse:
    """Coverage for the wire."""
    serving = found.serving
    return ingest_pb2.GetCoverageResponse(
        channels=[_channel_coverage(channel) for channel in found.channels],
        generation_id=serving.generation_id if serving else "",
        chunks=found.counts.chunks,
        chunks_without_vector=found.counts.without_vector,
        embedding_job_state=found.embedding_job_state,
        embedding_job_error=found.embedding_job_error,
        embedder=serving.embedder if serving else "",
        source=source_to_proto(found.workspace.source),
        seconds_left=found.seconds_left,
    )


def _channel_coverage(channel: ChannelCoverage) -> ingest_pb2.ChannelCoverage:
    oldest: Timestamp | None = timestamp(channel.oldest_at)
    shown = ingest_pb2.ChannelCoverage(
        channel_id=channel.channel_id,
        channel_name=channel.name,
        messages=channel.messages,
        oldest_at=oldest,
        newest_at=timestamp(channel.newest_at),
    )
    if channel.history is not None:
        shown.MergeFrom(_channel_history(channel.history))
    return shown


def _channel_history(history: ChannelHistory) -> ingest_pb2.ChannelCoverage:
    return ingest_pb2.ChannelCoverage(
        history_state=history.state,
        read_down_to=timestamp(history.read_down_to),
        completed_at=timestamp(history.completed_at),
        history_error=history.error,
        threads_waiting=history.threads_waiting,
        threads_failed=history.threads_failed,
    )


def workspace(found: Workspace) -> ingest_pb2.Workspace:
    """A workspace for the wire."""
    return ingest_pb2.Workspace(
        workspace_id=found.workspace_id,
        source=source_to_proto(found.source),
        team_id=found.team_id,
    )


def channel(row: ChannelRow) -> ingest_pb2.Channel:
    """A channel for the wire."""
    return ingest_pb2.Channel(
        channel_id=row.channel_id,
        name=row.name,
        kind=_CHANNEL_KINDS[row.kind],
        is_archived=row.is_archived,
        purpose=row.purpose,
    )
