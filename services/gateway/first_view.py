"""What the page shows before the first question, from the workspace's own data."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

from recall.corpus.v1 import corpus_pb2
from recall.retrieve.v1 import retrieve_pb2
from services.corpus import instant
from services.gateway.clients import Stages, reach
from services.gateway.config import DEMO_WORKSPACE
from services.gateway.context import is_public, public_context
from services.gateway.directory import Directory
from services.runtime.errors import CallError

SAMPLES = Path(__file__).parent / "web" / "samples.json"
READ_SECONDS = 3.0
# The example of a date filter reaches this far back from the newest message.
EXAMPLE_DAYS = 14


async def first_view(workspace_id: str, stages: Stages, directory: Directory) -> dict[str, Any]:
    """Workspace, public channels, sample questions, and a day for the example of ``after:``.

    The day is empty when there is no message, or when retrieve does not say. Raises CallError
    WORKSPACE_NOT_FOUND while the workspace is not loaded.
    """
    context = await public_context(workspace_id, directory)
    channels = await directory.channels(workspace_id)
    is_demo = workspace_id == DEMO_WORKSPACE
    return {
        "workspace": workspace_id,
        "channels": [channel.name for channel in channels if is_public(channel)],
        "samples": json.loads(SAMPLES.read_text("utf-8")) if is_demo else [],
        "example_day": await _example_day(context, stages),
    }


async def _example_day(context: corpus_pb2.QueryContext, stages: Stages) -> str:
    request = retrieve_pb2.ReadTimelineRequest(context=context, page_size=1, newest_first=True)
    try:
        page = await reach("retrieve", stages.retriever.ReadTimeline, request, READ_SECONDS)
    except CallError:
        return ""
    if not page.HasField("newest_at"):
        return ""
    return (instant(page.newest_at) - timedelta(days=EXAMPLE_DAYS)).date().isoformat()
