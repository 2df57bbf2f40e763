"""Proto to values and values to proto, for what an installed Slack app needs of ingest."""

from __future__ import annotations

from recall.ingest.v1 import slack_pb2
from services.ingest.record_event import Recorded, SlackDelivery

RECORDED = {
    Recorded.NEW: slack_pb2.RECORDED_NEW,
    Recorded.DUPLICATE: slack_pb2.RECORDED_DUPLICATE,
    Recorded.IGNORED: slack_pb2.RECORDED_IGNORED,
}


def delivery(request: slack_pb2.RecordEventRequest) -> SlackDelivery:
    """An event as the edge delivers it."""
    return SlackDelivery(
        team_id=request.team_id,
        enterprise_id=request.enterprise_id,
        event_id=request.event_id,
        envelope=request.envelope_json,
    )


def recorded(outcome: Recorded) -> slack_pb2.RecordEventResponse:
    """What became of an event."""
    return slack_pb2.RecordEventResponse(recorded=RECORDED[outcome])
