"""``recall status``: what an operator looks at."""

from __future__ import annotations

import argparse
import json

from recall.gateway.v1 import gateway_pb2
from services.cli import as_json, render
from services.cli.channel_status import run_channel_status
from services.cli.connection import OK, UNAVAILABLE, Stack, UsageError
from services.cli.terminal import show

STATUS_SECONDS = 20.0


async def run_status(options: argparse.Namespace, stack: Stack) -> int:
    """Stages and workspaces, 1 when a stage is down; or the channels of one workspace."""
    if options.workspace:
        return await run_channel_status(options, stack)
    request = gateway_pb2.GetStatusRequest()
    reply = await stack.gateway.GetStatus(request, timeout=STATUS_SECONDS)
    if options.json:
        print(json.dumps(as_json.status(reply), ensure_ascii=False, indent=2))
    else:
        show(render.status(reply))
    return OK if all(stage.serving for stage in reply.stages) else UNAVAILABLE


async def only_workspace(stack: Stack) -> str:
    """The workspace of a stack that has one. Raises UsageError."""
    reply = await stack.gateway.GetStatus(gateway_pb2.GetStatusRequest(), timeout=STATUS_SECONDS)
    names = [each.workspace_id for each in reply.workspaces]
    if len(names) != 1:
        known = ", ".join(names) or "none yet"
        raise UsageError(f"--workspace is missing: name one of {known}.")
    return names[0]
