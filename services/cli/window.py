"""``recall catch-up``, ``recall summary`` and ``recall decisions``: a window in time order."""

from __future__ import annotations

import argparse
import json

from recall.gateway.v1 import gateway_pb2
from services.cli import as_json, render
from services.cli.connection import NOT_ANSWERED, OK, SOURCES_ONLY, Stack
from services.cli.options import filter_of, reader_of
from services.cli.terminal import show

WINDOW_SECONDS = 180.0
_STATUS = {"answered": OK, "sources_only": SOURCES_ONLY}


async def run_catch_up(options: argparse.Namespace, stack: Stack) -> int:
    """What happened."""
    request = gateway_pb2.CatchUpRequest(reader=reader_of(options), filter=filter_of(options))
    reply = await stack.gateway.CatchUp(request, timeout=WINDOW_SECONDS)
    return _print(options, reply.window, {})


async def run_summary(options: argparse.Namespace, stack: Stack) -> int:
    """A summary."""
    request = gateway_pb2.SummariseRequest(reader=reader_of(options), filter=filter_of(options))
    reply = await stack.gateway.Summarise(request, timeout=WINDOW_SECONDS)
    return _print(options, reply.window, {})


async def run_decisions(options: argparse.Namespace, stack: Stack) -> int:
    """The decisions."""
    request = gateway_pb2.ListDecisionsRequest(reader=reader_of(options), filter=filter_of(options))
    reply = await stack.gateway.ListDecisions(request, timeout=WINDOW_SECONDS)
    decisions = [as_json.decision(each) for each in reply.decisions]
    return _print(options, reply.window, {"decisions": decisions})


def _print(
    options: argparse.Namespace, window: gateway_pb2.WindowText, more: dict[str, object]
) -> int:
    if options.json:
        print(json.dumps(as_json.window(window) | more, ensure_ascii=False, indent=2))
    else:
        show(render.window(window))
    return _STATUS.get(as_json.outcome_name(window.outcome), NOT_ANSWERED)
