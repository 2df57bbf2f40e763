"""``recall status --workspace``: each channel's messages and how far its history is read."""

from __future__ import annotations

import argparse
import json
from typing import Any

from google.protobuf.timestamp_pb2 import Timestamp

from recall.ingest.v1 import ingest_pb2
from services.cli import as_json, render
from services.cli.connection import OK, Stack
from services.cli.terminal import show
from services.corpus import instant

STATUS_SECONDS = 20.0
_HEADS = ("channel", "messages", "back to", "newest", "history", "checked (UTC)", "threads")
_DAY, _HOUR, _MINUTE = 86_400, 3_600, 60


async def run_channel_status(options: argparse.Namespace, stack: Stack) -> int:
    """One workspace's channels."""
    request = ingest_pb2.GetCoverageRequest(workspace_id=options.workspace)
    reply = await stack.ingest.GetCoverage(request, timeout=STATUS_SECONDS)
    if options.json:
        print(json.dumps(as_object(options.workspace, reply), ensure_ascii=False, indent=2))
    else:
        show(as_text(reply))
    return OK


def as_text(reply: ingest_pb2.GetCoverageResponse) -> str:
    """A table, each channel's last failure below it, and how long the rest will take."""
    if not reply.channels:
        return "No channel yet."
    header, *lines = render.table(_HEADS, [_row(each) for each in reply.channels]).splitlines()
    parts = [header]
    for each, line in zip(reply.channels, lines, strict=True):
        parts.append(line)
        if each.history_error:
            parts.append(f"    last failure: {each.history_error}")
    return "\n".join([*parts, *_rest(reply)])


def as_object(workspace: str, reply: ingest_pb2.GetCoverageResponse) -> dict[str, Any]:
    """The same as ``--json`` prints it."""
    return {
        "workspace_id": workspace,
        "seconds_left": reply.seconds_left if reply.HasField("seconds_left") else None,
        "channels": [_channel(each) for each in reply.channels],
    }


def duration(seconds: float) -> str:
    """About how long, in two units at most: "3 days 4 hours", "under a minute"."""
    whole = round(seconds / _MINUTE) * _MINUTE
    if whole < _MINUTE:
        return "under a minute"
    units = [(whole // _DAY, "day"), (whole % _DAY // _HOUR, "hour")]
    units.append((whole % _HOUR // _MINUTE, "minute"))
    named = [f"{count} {unit}{'s' if count != 1 else ''}" for count, unit in units if count]
    return " ".join(named[:2])


def _row(each: ingest_pb2.ChannelCoverage) -> tuple[str, ...]:
    return (
        each.channel_name,
        str(each.messages),
        _back_to(each),
        _stamp(each, "newest_at", "%Y-%m-%d %H:%M"),
        each.history_state or "imported",
        _stamp(each, "completed_at", "%Y-%m-%d %H:%M"),
        _threads(each),
    )


def _back_to(each: ingest_pb2.ChannelCoverage) -> str:
    """How far back messages are known: all that are kept, once a first reading is complete."""
    if each.HasField("completed_at"):
        return "all"
    name = "read_down_to" if each.history_state else "oldest_at"
    return _stamp(each, name, "%Y-%m-%d")


def _stamp(each: ingest_pb2.ChannelCoverage, name: str, form: str) -> str:
    stamp: Timestamp = getattr(each, name)
    return instant(stamp).strftime(form) if each.HasField(name) else "-"  # type: ignore[arg-type]


def _threads(each: ingest_pb2.ChannelCoverage) -> str:
    counts = ((each.threads_waiting, "waiting"), (each.threads_failed, "failed"))
    return ", ".join(f"{count} {state}" for count, state in counts if count) or "-"


def _rest(reply: ingest_pb2.GetCoverageResponse) -> list[str]:
    live = [each for each in reply.channels if each.history_state not in ("", "left")]
    if reply.HasField("seconds_left"):
        return [f"About {duration(reply.seconds_left)} left, at the pace in force."]
    if all(each.HasField("completed_at") and _threads(each) == "-" for each in live):
        return ["Everything is read."] if live else []
    return ["How long the rest will take can not be told yet."]


def _channel(each: ingest_pb2.ChannelCoverage) -> dict[str, Any]:
    stamps = ("oldest_at", "newest_at", "read_down_to", "completed_at")
    return {
        "channel_id": each.channel_id,
        "channel": each.channel_name,
        "messages": each.messages,
        "history": each.history_state,
        "error": each.history_error,
        "threads_waiting": each.threads_waiting,
        "threads_failed": each.threads_failed,
    } | {name: _iso(each, name) for name in stamps}


def _iso(each: ingest_pb2.ChannelCoverage, name: str) -> str | None:
    return as_json.iso(getattr(each, name)) if each.HasField(name) else None  # type: ignore[arg-type]
