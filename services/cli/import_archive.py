"""``recall import PATH``: stream an archive to ingest, then wait for its vectors."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import grpc
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from recall.error.v1 import error_pb2
from recall.ingest.v1 import ingest_pb2
from services.cli import as_json, render
from services.cli.archive import ArchiveError, read_archive
from services.cli.archive_entries import readable_name
from services.cli.connection import BAD_USAGE, OK, UNAVAILABLE, Stack, has_broken_off
from services.cli.terminal import show
from services.runtime.errors import CallError, from_rpc_error, unavailable

POLL_SECONDS = 0.5
# An embedding lane that has not moved for this long is reported instead of waited for.
STALLED_SECONDS = 60.0
# With a known fault there is less to wait for.
FAILING_SECONDS = 10.0
CALL_SECONDS = 10.0


async def run_import(options: argparse.Namespace, stack: Stack) -> int:
    """Import, print the report, wait for the vectors unless told not to."""
    path = Path(options.path)
    try:
        report = await _import(stack, path, options)
    except ArchiveError as error:
        print(error, file=sys.stderr)
        return BAD_USAGE
    if not options.json:
        show(render.import_report(as_json.import_report(report)))
    waited = OK if options.no_wait else await _wait_for_vectors(stack, report)
    if options.json:
        print(json.dumps(as_json.import_report(report), ensure_ascii=False, indent=2))
    return waited


async def _import(stack: Stack, path: Path, options: argparse.Namespace) -> ingest_pb2.ImportReport:
    faults: list[ArchiveError] = []

    async def requests() -> AsyncIterator[ingest_pb2.ImportMessagesRequest]:
        try:
            async for request in _in_thread(read_archive(path, _header(options, path))):
                yield request
        except ArchiveError as error:
            faults.append(error)

    with _progress("records") as progress:
        task = progress.add_task("importing", total=None)
        try:
            async for event in _events(stack, requests()):
                if event.HasField("report"):
                    return event.report
                progress.update(task, completed=event.progress.received)
        finally:
            if faults:
                raise faults[0]
    raise _interrupted()


async def _events(
    stack: Stack, requests: AsyncIterator[ingest_pb2.ImportMessagesRequest]
) -> AsyncIterator[ingest_pb2.ImportMessagesResponse]:
    try:
        async for event in stack.ingest.ImportMessages(requests):
            yield event
    except grpc.aio.AioRpcError as error:
        if not has_broken_off(from_rpc_error(error)):
            raise
        raise _interrupted() from None


def _interrupted() -> CallError:
    """Ingest ended in the middle of an import. What it committed stays."""
    return unavailable(
        error_pb2.ERROR_REASON_STAGE_UNAVAILABLE,
        "The import was interrupted; repeat it: what is stored already is not stored twice.",
    )


async def _in_thread(
    items: Iterator[ingest_pb2.ImportMessagesRequest],
) -> AsyncIterator[ingest_pb2.ImportMessagesRequest]:
    """The same items, each read outside the event loop so that the stream keeps its heartbeat."""
    end = object()
    while (item := await asyncio.to_thread(next, items, end)) is not end:
        assert isinstance(item, ingest_pb2.ImportMessagesRequest)
        yield item


async def _wait_for_vectors(stack: Stack, report: ingest_pb2.ImportReport) -> int:
    """Show the embedding lane's progress until nothing is missing."""
    request = ingest_pb2.GetCoverageRequest(workspace_id=report.workspace_id)
    moved_at, last_missing = time.monotonic(), -1
    with _progress("chunks") as progress:
        task = progress.add_task("embedding", total=None)
        while True:
            coverage = await stack.ingest.GetCoverage(request, timeout=CALL_SECONDS)
            missing = coverage.chunks_without_vector
            progress.update(task, total=coverage.chunks, completed=coverage.chunks - missing)
            if missing == 0:
                return OK
            if missing != last_missing:
                moved_at, last_missing = time.monotonic(), missing
            if coverage.embedding_job_state == "dead" or _stalled(moved_at, coverage):
                return _say_unfinished(coverage)
            await asyncio.sleep(POLL_SECONDS)


def _say_unfinished(coverage: ingest_pb2.GetCoverageResponse) -> int:
    waiting = "they wait for the embedding worker, which is busy with other work or not running."
    why = coverage.embedding_job_error or waiting
    print(
        f"{coverage.chunks_without_vector} of {coverage.chunks} chunks have no vector yet: {why} "
        "They can be found by their words already; `recall status` shows the rest.",
        file=sys.stderr,
    )
    return UNAVAILABLE


def _stalled(moved_at: float, coverage: ingest_pb2.GetCoverageResponse) -> bool:
    patience = FAILING_SECONDS if coverage.embedding_job_error else STALLED_SECONDS
    return time.monotonic() - moved_at > patience


def _header(options: argparse.Namespace, path: Path) -> ingest_pb2.ImportHeader:
    return ingest_pb2.ImportHeader(
        workspace_id=options.workspace or "",
        team_id=options.team or "",
        embedder=options.embedder or "",
        default_workspace_id=readable_name(Path(path.resolve().stem)),
        skip_bots=options.skip_bots,
    )


@contextmanager
def _progress(unit: str) -> Iterator[Progress]:
    """A progress bar on stderr; silent where nobody watches."""
    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn(unit),
        TimeRemainingColumn(),
    )
    disable = not console.is_terminal
    with Progress(*columns, console=console, disable=disable, transient=True) as progress:
        yield progress
