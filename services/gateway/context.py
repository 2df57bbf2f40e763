"""What an asker may read: a wish, cut down to the caller's rights.

A wish can narrow rights, never widen them. A channel that may not be read is treated exactly like
one that does not exist.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import grpc

from recall.corpus.v1 import corpus_pb2
from recall.error.v1 import error_pb2
from recall.gateway.v1 import gateway_pb2
from recall.ingest.v1 import ingest_pb2
from services.gateway.config import DEMO_WORKSPACE
from services.gateway.directory import Directory
from services.runtime.callers import Caller
from services.runtime.errors import CallError, invalid


async def query_context(
    reader: gateway_pb2.Reader, caller: Caller, directory: Directory
) -> corpus_pb2.QueryContext:
    """The context of a caller's call. Raises CallError for a workspace that can not be chosen."""
    readable = readable_workspaces(await directory.workspaces(reader.workspace_id), caller)
    workspace = choose_workspace(reader.workspace_id, readable)
    channels = await directory.channels(workspace.workspace_id)
    return corpus_pb2.QueryContext(
        source=workspace.source,
        workspace_id=workspace.workspace_id,
        channel_ids=readable_channel_ids(reader, channels, caller),
    )


async def public_context(workspace_id: str, directory: Directory) -> corpus_pb2.QueryContext:
    """The context of somebody without an identity: one workspace's public channels.

    Raises CallError WORKSPACE_NOT_FOUND while the workspace is not loaded.
    """
    workspaces = await directory.workspaces(workspace_id)
    found = [workspace for workspace in workspaces if workspace.workspace_id == workspace_id]
    if not found:
        raise CallError(
            grpc.StatusCode.UNAVAILABLE,
            error_pb2.ERROR_REASON_WORKSPACE_NOT_FOUND,
            f"The workspace {workspace_id!r} is not loaded yet. {_how_to_load(workspace_id)}",
            retry_after_seconds=5.0,
        )
    channels = await directory.channels(workspace_id)
    return corpus_pb2.QueryContext(
        source=found[0].source,
        workspace_id=workspace_id,
        channel_ids=sorted(channel.channel_id for channel in channels if is_public(channel)),
    )


def _how_to_load(workspace_id: str) -> str:
    if workspace_id == DEMO_WORKSPACE:
        return "Run `make demo`: it loads the example data and opens this page."
    return f"Load its archive with `recall import PATH --workspace {workspace_id}`."


def readable_workspaces(
    workspaces: Iterable[ingest_pb2.Workspace], caller: Caller
) -> list[ingest_pb2.Workspace]:
    """The workspaces that the caller is listed for."""
    return [w for w in workspaces if caller.may_read_workspace(w.workspace_id)]


def choose_workspace(wanted: str, readable: Sequence[ingest_pb2.Workspace]) -> ingest_pb2.Workspace:
    """The wanted workspace, or the only readable one.

    One that may not be read is answered like one that does not exist.
    """
    names = ", ".join(sorted(workspace.workspace_id for workspace in readable))
    if wanted:
        for workspace in readable:
            if workspace.workspace_id == wanted:
                return workspace
        raise _no_workspace(f"No workspace {wanted!r}. {_choices(names)}")
    if len(readable) == 1:
        return readable[0]
    if not readable:
        raise _no_workspace(_choices(names))
    raise invalid("reader.workspace_id", f"name one of the workspaces you can read: {names}.")


def readable_channel_ids(
    reader: gateway_pb2.Reader, channels: Iterable[ingest_pb2.Channel], caller: Caller
) -> list[str]:
    """Ids of the channels to read, sorted. Empty means that nothing may be read.

    Without a wish, every public channel that the caller may read, archived ones included. A
    private channel is only read when the wish names it.
    """
    if reader.no_channels:
        return []
    readable = [channel for channel in channels if caller.may_read_channel(channel.channel_id)]
    if not reader.channel_ids:
        return sorted(channel.channel_id for channel in readable if is_public(channel))
    wanted = set(reader.channel_ids)
    names = {_folded(name) for name in wanted}
    return sorted(
        channel.channel_id
        for channel in readable
        if channel.channel_id in wanted or (channel.name and _folded(channel.name) in names)
    )


def is_public(channel: ingest_pb2.Channel) -> bool:
    """Whether everybody in the workspace can see the channel."""
    return channel.kind == ingest_pb2.CHANNEL_KIND_PUBLIC


def _folded(name: str) -> str:
    return name.strip().removeprefix("#").casefold()


def _choices(names: str) -> str:
    if names:
        return f"You can read: {names}."
    return "You can read none: import one with `recall import PATH`, or list it for your caller."


def _no_workspace(message: str) -> CallError:
    return CallError(grpc.StatusCode.NOT_FOUND, error_pb2.ERROR_REASON_WORKSPACE_NOT_FOUND, message)
