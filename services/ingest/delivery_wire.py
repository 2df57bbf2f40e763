"""Proto to values and values to proto, for commands, deliveries and feedback."""

from __future__ import annotations

from google.protobuf.json_format import MessageToDict

from recall.ingest.v1 import slack_pb2
from services.ingest.deliveries import Delivery, Evidence, Intention
from services.ingest.finish_delivery import End
from services.ingest.record_command import AskedCommand
from services.ingest.record_feedback import Judgement
from services.runtime.errors import invalid

_STATES = {
    "begun": slack_pb2.DELIVERY_STATE_BEGUN,
    "delivered": slack_pb2.DELIVERY_STATE_DELIVERED,
    "suppressed": slack_pb2.DELIVERY_STATE_SUPPRESSED,
    "failed": slack_pb2.DELIVERY_STATE_FAILED,
    "in_doubt": slack_pb2.DELIVERY_STATE_IN_DOUBT,
}
_ENDS = {state: name for name, state in _STATES.items() if name != "begun"}

DEFAULT_PURPOSE = "answer"


def asked_command(request: slack_pb2.RecordCommandRequest) -> AskedCommand:
    """A command as the edge verified it. Raises CallError INVALID_ARGUMENT."""
    if request.command.door == slack_pb2.COMMAND_DOOR_UNSPECIFIED:
        raise invalid("command.door", "must say where it was asked")
    return AskedCommand(
        team_id=request.team_id,
        enterprise_id=request.enterprise_id,
        dedup_key=request.dedup_key,
        command=MessageToDict(request.command, preserving_proto_field_name=True),
    )


def intention(request: slack_pb2.BeginDeliveryRequest) -> Intention:
    """What is to be posted."""
    wire = request.delivery
    return Intention(
        workspace_id=wire.workspace_id,
        job_id=wire.job_id,
        claim_number=request.claim_number,
        purpose=wire.purpose or DEFAULT_PURPOSE,
        channel_id=wire.channel_id,
        person_id=wire.person_id,
        evidence=[Evidence(each.message_id, each.content_sha256) for each in wire.evidence],
        outcome=wire.outcome,
    )


def end(request: slack_pb2.FinishDeliveryRequest) -> End:
    """How a delivery ended. Raises CallError INVALID_ARGUMENT."""
    if request.state not in _ENDS:
        raise invalid("state", "must say how it ended: DELIVERED, SUPPRESSED, FAILED or IN_DOUBT")
    return End(_ENDS[request.state], request.message_ts, request.reason)


def delivery(found: Delivery) -> slack_pb2.Delivery:
    """A delivery for the wire."""
    return slack_pb2.Delivery(
        delivery_id=found.delivery_id,
        workspace_id=found.workspace_id,
        job_id=found.job_id,
        purpose=found.purpose,
        state=_STATES[found.state],
        channel_id=found.channel_id,
        person_id=found.person_id,
        message_ts=found.message_ts,
        evidence=[slack_pb2.EvidenceRef(**vars(each)) for each in found.evidence],
        outcome=found.outcome,
        reason=found.reason,
    )


def judgement(request: slack_pb2.RecordFeedbackRequest) -> Judgement:
    """What a person thinks of an answer."""
    return Judgement(request.delivery_id, request.person_id, request.is_helpful, request.question)
