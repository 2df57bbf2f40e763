"""``recall generations``: list, build, validate, promote, roll back and collect indexes."""

from __future__ import annotations

import argparse
import asyncio
import json
import time

import grpc

from recall.error.v1 import error_pb2
from recall.gateway.v1 import admin_pb2
from recall.ingest.v1 import generations_pb2
from services.cli import show_generations as show
from services.cli.connection import OK, UNAVAILABLE, Stack, UsageError
from services.cli.operate import STATUS_SECONDS, only_workspace
from services.runtime.errors import from_rpc_error

CHANGE_SECONDS = 3600.0
POLL_SECONDS = 1.0
# An embedding lane that has not moved for this long is reported instead of waited for.
STALLED_SECONDS = 60.0


async def run_generations(options: argparse.Namespace, stack: Stack) -> int:
    """One of the actions."""
    actions = {
        "list": _list,
        "build": _build,
        "validate": _validate,
        "promote": _promote,
        "rollback": _roll_back,
        "gc": _collect,
    }
    workspace = options.workspace or await only_workspace(stack)
    return await actions[options.action](options, stack, workspace)


async def _list(options: argparse.Namespace, stack: Stack, workspace: str) -> int:
    listed = await _listed(stack, workspace)
    if options.collection:
        listed = [each for each in listed if each.collection == options.collection]
    return _print(options, listed)


async def _build(options: argparse.Namespace, stack: Stack, workspace: str) -> int:
    request = generations_pb2.BuildGenerationRequest(
        workspace_id=workspace, embedder=options.embedder or ""
    )
    built = await stack.generations.BuildGeneration(request, timeout=CHANGE_SECONDS)
    return _print(options, [built.generation])


async def _validate(options: argparse.Namespace, stack: Stack, workspace: str) -> int:
    """Prints what was read and found; 1 when something is wrong."""
    request = admin_pb2.ValidateGenerationRequest(
        workspace_id=workspace, generation_id=_generation(options)
    )
    growth = _Growth(stack, workspace, request.generation_id)
    while True:
        try:
            reply = await stack.admin.ValidateGeneration(request, timeout=CHANGE_SECONDS)
            break
        except grpc.aio.AioRpcError as error:
            if not options.wait or not await growth.goes_on(error):
                raise
        await asyncio.sleep(POLL_SECONDS)
    if options.json:
        print(json.dumps(show.validation(reply.result), ensure_ascii=False, indent=2))
    else:
        print(show.validation_text(reply.result))
    return UNAVAILABLE if reply.result.faults else OK


async def _promote(options: argparse.Namespace, stack: Stack, workspace: str) -> int:
    request = generations_pb2.PromoteGenerationRequest(
        workspace_id=workspace,
        generation_id=_generation(options),
        uncertified=options.uncertified,
    )
    promoted = await stack.generations.PromoteGeneration(request, timeout=CHANGE_SECONDS)
    return _print(options, [promoted.generation])


async def _roll_back(options: argparse.Namespace, stack: Stack, workspace: str) -> int:
    request = generations_pb2.RollbackGenerationRequest(
        workspace_id=workspace,
        collection=options.collection or "",
        reason=options.reason or "",
    )
    serving = await stack.generations.RollbackGeneration(request, timeout=CHANGE_SECONDS)
    return _print(options, [serving.generation])


async def _collect(options: argparse.Namespace, stack: Stack, workspace: str) -> int:
    request = generations_pb2.CollectGenerationsRequest(
        workspace_id=workspace, given_up_id=options.generation or ""
    )
    collected = await stack.generations.CollectGenerations(request, timeout=CHANGE_SECONDS)
    ids = list(collected.generation_ids)
    if options.json:
        print(json.dumps({"without_rows": ids}, indent=2))
    else:
        print("\n".join(ids) if ids else "Nothing to collect.")
    return OK


class _Growth:
    """Whether a generation that is not complete yet still comes nearer to it."""

    def __init__(self, stack: Stack, workspace: str, generation_id: str) -> None:
        self._stack = stack
        self._workspace = workspace
        self._generation_id = generation_id
        self._seen: tuple[int, int] | None = None
        self._moved_at = time.monotonic()

    async def goes_on(self, error: grpc.aio.AioRpcError) -> bool:
        """Whether waiting helps: what is missing is being written, and not for 60 s in vain."""
        if from_rpc_error(error).reason != error_pb2.ERROR_REASON_GENERATION_NOT_READY:
            return False
        for each in await _listed(self._stack, self._workspace):
            if each.generation_id == self._generation_id and not each.failure_reason:
                return self._moves((each.chunks, each.chunks_without_vector))
        return False

    def _moves(self, counts: tuple[int, int]) -> bool:
        if counts != self._seen:
            self._seen, self._moved_at = counts, time.monotonic()
        return time.monotonic() - self._moved_at < STALLED_SECONDS


async def _listed(stack: Stack, workspace: str) -> list[generations_pb2.Generation]:
    request = generations_pb2.ListGenerationsRequest(workspace_id=workspace)
    reply = await stack.generations.ListGenerations(request, timeout=STATUS_SECONDS)
    return list(reply.generations)


def _generation(options: argparse.Namespace) -> str:
    if not options.generation:
        raise UsageError("GENERATION is missing: `recall generations list` shows the ids.")
    generation_id: str = options.generation
    return generation_id


def _print(options: argparse.Namespace, generations: list[generations_pb2.Generation]) -> int:
    if options.json:
        print(json.dumps([show.generation(each) for each in generations], indent=2))
    else:
        print(show.generation_table(generations))
    return OK
