"""``recall documents``: build a collection's index from a folder, a zip file or S3; erase one."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from typing import TYPE_CHECKING

import grpc

from recall.error.v1 import error_pb2
from recall.gateway.v1 import admin_pb2
from recall.ingest.v1 import documents_pb2, generations_pb2
from services.cli import show_generations
from services.cli.connection import OK, UNAVAILABLE, Stack, UsageError
from services.cli.terminal import show
from services.document_build import DocumentBuild, send_documents
from services.runtime.errors import from_rpc_error

if TYPE_CHECKING:
    from services.cli.document_sources import Found

DEFAULT_WORKSPACE = "documents"
BUILD_SECONDS = 3600.0
POLL_SECONDS = 1.0


async def run_documents(options: argparse.Namespace, stack: Stack) -> int:
    """Build, or erase."""
    return await (_build if options.action == "build" else _erase)(options, stack)


async def _build(options: argparse.Namespace, stack: Stack) -> int:
    # The client of S3 takes longer to load than any other command to run.
    from services.cli.document_sources import find_documents

    found = find_documents(options.where, options.collection)
    if not found.manifest.objects:
        raise UsageError(f"{options.where}: holds no document")
    report = await _send(found, options, stack)
    generation_id = report.generation.generation_id
    _say(
        f"built {generation_id}: {report.counts.carried} carried forward, {report.counts.read} read"
    )
    checked = await _validated(options, stack, generation_id)
    if checked.faults:
        show("\n".join(f"fault: {fault}" for fault in checked.faults))
        return UNAVAILABLE
    generation = checked.generation
    if options.promote:
        promotion = generations_pb2.PromoteGenerationRequest(
            workspace_id=options.workspace,
            generation_id=generation_id,
            uncertified=options.uncertified,
        )
        reply = await stack.generations.PromoteGeneration(promotion, timeout=BUILD_SECONDS)
        generation = reply.generation
    _print(options, found, report, generation)
    return OK


async def _erase(options: argparse.Namespace, stack: Stack) -> int:
    request = documents_pb2.EraseSourceRequest(
        workspace_id=options.workspace, collection=options.collection, uri=options.where
    )
    reply = await stack.ingest.EraseSource(request, timeout=BUILD_SECONDS)
    if reply.generation_ids:
        count = len(reply.generation_ids)
        show(f"erased {options.where}: {reply.chunks} chunks in {count} generations")
    else:
        show(f"{options.where}: no generation holds it; no later build of this URI will be taken")
    return OK


async def _send(
    found: Found, options: argparse.Namespace, stack: Stack
) -> documents_pb2.DocumentsReport:
    """Open the build, send what is asked for, wait for the report."""
    build = DocumentBuild(options.workspace, found.manifest, options.embedder or "")
    report = documents_pb2.DocumentsReport()
    async for reply in send_documents(stack.ingest, build, found.read, BUILD_SECONDS):
        if reply.HasField("progress"):
            counts = reply.progress
            _say(f"read {counts.read} of {counts.sources - counts.carried} documents")
        elif reply.HasField("report"):
            report = reply.report
    return report


async def _validated(
    options: argparse.Namespace, stack: Stack, generation_id: str
) -> generations_pb2.ValidateGenerationResponse:
    """Wait for the vectors, then have it read back and searched."""
    request = admin_pb2.ValidateGenerationRequest(
        workspace_id=options.workspace, generation_id=generation_id
    )
    while True:
        try:
            reply = await stack.admin.ValidateGeneration(request, timeout=BUILD_SECONDS)
        except grpc.aio.AioRpcError as error:
            waiting = error_pb2.ERROR_REASON_GENERATION_NOT_READY
            if from_rpc_error(error).reason != waiting:
                raise
            await asyncio.sleep(POLL_SECONDS)
        else:
            return reply.result


def _print(
    options: argparse.Namespace,
    found: Found,
    report: documents_pb2.DocumentsReport,
    generation: generations_pb2.Generation,
) -> None:
    names = {each.uri: each.path for each in found.manifest.objects}
    problems = [
        {"path": names.get(each.uri, each.uri), "line": each.line, "message": each.message}
        for each in report.problems
    ]
    if options.json:
        told = {
            **show_generations.generation(generation),
            "sources": report.counts.sources,
            "carried": report.counts.carried,
            "read": report.counts.read,
            "problems": problems,
            "left_out": list(found.left_out),
        }
        show(json.dumps(told, ensure_ascii=False, indent=2))
        return
    lines = [
        f"{options.collection}: {report.counts.sources} documents, {report.counts.carried} carried "
        f"forward, {report.counts.read} read, {report.counts.chunks} chunks",
        f"generation {generation.generation_id} is {show_generations.state_name(generation.state)}",
        *(f"{each['path']}:{each['line']}: {each['message']}" for each in problems),
        *(f"left out: {each}" for each in found.left_out),
    ]
    if not options.promote:
        lines.append(f"serve it with: recall generations promote {generation.generation_id}")
    show("\n".join(lines))


def _say(line: str) -> None:
    print(line, file=sys.stderr)
