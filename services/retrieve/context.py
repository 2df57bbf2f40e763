"""The query context of a request, checked: who may read what."""

from __future__ import annotations

from recall.corpus.v1 import corpus_pb2
from services.corpus import QueryContext, source_from_proto
from services.runtime import call as calls
from services.runtime.callers import require_channels, require_workspace
from services.runtime.errors import invalid

NOTHING_READABLE = "No channel may be read in this context, so nothing was looked at."


def checked_context(wire: corpus_pb2.QueryContext) -> QueryContext:
    """The context of the call in progress.

    Raises CallError INVALID_ARGUMENT for a missing source or workspace, PERMISSION_DENIED for a
    workspace or channel that the caller itself may not read.
    """
    source = source_from_proto(wire.source)
    if source is None:
        raise invalid("context.source", "is required: SOURCE_SLACK, _SYNTHETIC or _DOCUMENT")
    workspace_id = checked_text("context.workspace_id", wire.workspace_id)
    if not workspace_id:
        raise invalid("context.workspace_id", "is required: name the workspace to read")
    channel_ids = tuple(dict.fromkeys(wire.channel_ids))
    for channel_id in channel_ids:
        checked_text("context.channel_ids", channel_id)
    caller = calls.caller()
    require_workspace(caller, workspace_id)
    require_channels(caller, channel_ids)
    return QueryContext(source, workspace_id, channel_ids)


def checked_text(field: str, text: str) -> str:
    """The text, unless it holds a NUL: PostgreSQL stores none, so it names nothing."""
    if "\0" in text:
        raise invalid(field, "holds a NUL character; remove it")
    return text
