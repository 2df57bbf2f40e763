"""Handing a delivery of Slack to ingest, before it is acknowledged."""

from __future__ import annotations

from recall.ingest.v1 import slack_pb2
from services.gateway.clients import Stages, reach
from services.gateway.slack.events import Recordable

# Slack waits three seconds for an acknowledgement.
RECORD_SECONDS = 2.0


async def record(delivery: Recordable, stages: Stages) -> slack_pb2.Recorded.ValueType:
    """What became of it, once it is committed. Raises CallError."""
    if isinstance(delivery, slack_pb2.RecordEventRequest):
        event = await reach("ingest", stages.ingester.RecordEvent, delivery, RECORD_SECONDS)
        return event.recorded
    command = await reach("ingest", stages.ingester.RecordCommand, delivery, RECORD_SECONDS)
    return command.recorded
