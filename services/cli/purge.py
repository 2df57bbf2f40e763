"""``recall purge``: delete everything of a workspace or of one channel, and say what it was."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys

from recall.ingest.v1 import ingest_pb2
from services.cli import as_json, render
from services.cli.connection import OK, UNAVAILABLE, Stack, UsageError
from services.cli.operate import STATUS_SECONDS
from services.cli.terminal import show

POLL_SECONDS = 0.5


async def run_purge(options: argparse.Namespace, stack: Stack) -> int:
    """Ask for the purge, wait for it and print its report; 1 when it failed."""
    if not options.workspace:
        raise UsageError("--workspace is missing: name the workspace to delete from.")
    channel_id = ""
    if options.channel:
        channel_id = await _channel_id(stack, options.workspace, options.channel)
    if not options.yes:
        _confirm(options)
    purge_id = await _request(stack, options.workspace, channel_id)
    print("purging; Ctrl-C stops the waiting, not the purge", file=sys.stderr)
    report = await _finished(stack, options.workspace, purge_id)
    if report is None:
        print("The purge failed: `recall jobs` shows why and retries it.", file=sys.stderr)
        return UNAVAILABLE
    if options.json:
        print(json.dumps(as_json.purge(report), indent=2))
    else:
        show(render.purge(options.workspace, report))
    return OK


def _confirm(options: argparse.Namespace) -> None:
    """Have the name typed. Raises UsageError when nobody can or the name is another one."""
    what = f"channel {options.channel} of " if options.channel else ""
    if not sys.stdin.isatty():
        raise UsageError(f"--yes is missing: this deletes all of {what}{options.workspace}.")
    name = options.channel or options.workspace
    print(f"This deletes all of {what}{options.workspace}; it can not be undone.", file=sys.stderr)
    print(f"Type {name} to go on: ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip() != name:
        raise UsageError("Nothing was deleted.")


async def _channel_id(stack: Stack, workspace: str, channel: str) -> str:
    """The channel that is meant by an id or by a name."""
    request = ingest_pb2.ListChannelsRequest(workspace_id=workspace)
    listed = (await stack.directory.ListChannels(request, timeout=STATUS_SECONDS)).channels
    if any(each.channel_id == channel for each in listed):
        return channel
    found = [each.channel_id for each in listed if each.name == channel.removeprefix("#")]
    if len(found) != 1:
        several = f"is the name of {len(found)} ({', '.join(found)}); give the id"
        problem = several if found else "is not in the workspace; `recall status` lists them"
        raise UsageError(f"--channel {channel!r} {problem}.")
    return found[0]


async def _request(stack: Stack, workspace: str, channel_id: str) -> str:
    if not channel_id:
        whole = ingest_pb2.PurgeWorkspaceRequest(workspace_id=workspace)
        return (await stack.ingest.PurgeWorkspace(whole, timeout=STATUS_SECONDS)).purge_id
    one = ingest_pb2.PurgeChannelRequest(workspace_id=workspace, channel_id=channel_id)
    return (await stack.ingest.PurgeChannel(one, timeout=STATUS_SECONDS)).purge_id


async def _finished(
    stack: Stack, workspace: str, purge_id: str
) -> ingest_pb2.GetPurgeResponse | None:
    """The report once the purge is finished; None when it was given up."""
    request = ingest_pb2.GetPurgeRequest(workspace_id=workspace, purge_id=purge_id)
    while True:
        report = await stack.ingest.GetPurge(request, timeout=STATUS_SECONDS)
        if report.is_finished:
            return report
        if report.is_given_up:
            return None
        await asyncio.sleep(POLL_SECONDS)
