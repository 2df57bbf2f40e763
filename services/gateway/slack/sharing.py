"""Showing an answer to its channel, when everybody there may see every source of it."""

from __future__ import annotations

import time
from collections.abc import Sequence

import grpc

from recall.corpus.v1 import corpus_pb2
from recall.ingest.v1 import ingest_pb2, slack_pb2
from recall.retrieve.v1 import retrieve_pb2
from services.gateway.clients import reach
from services.gateway.context import is_public
from services.gateway.deadline import deadline_in
from services.gateway.reread import REREAD_SECONDS
from services.gateway.slack.asker import Desk, query_context
from services.gateway.slack.blocks import escape, lay_out_shared
from services.gateway.slack.buttons import Shared, read_judgement_value, read_share_value
from services.gateway.slack.deliver import RECORD_SECONDS, Errand, once
from services.gateway.slack.posting import Post, find_post, post_to_conversation
from services.gateway.slack.replies import Reply, told
from services.runtime.errors import CallError

SHARE = "share"
CHECK_SECONDS = 15.0

UNKNOWN = "I no longer know this answer. Ask again, then share the new one."
CHANGED = "A message behind this answer has changed, so it is not shared. Ask again."
NOT_FOR_ALL = (
    "Some sources of this answer are in a channel that not everybody here can see, so it is not "
    "shared. Ask with `in:` this channel to get one that is."
)
SHARED = "Shared."
THANKS = "Thank you, that helps to make answers better."


async def share(errand: Errand, value: str, desk: Desk) -> Reply:
    """Post the answer that a button carries; what the person is told. Raises as ``once`` does."""
    shared = read_share_value(value)
    delivery = await _delivery(errand, shared.delivery_id, desk) if shared else None
    if shared is None or delivery is None or delivery.person_id != errand.asker.person_id:
        return told(UNKNOWN)
    sources = await _unchanged_sources(errand, delivery.evidence, desk)
    if len(sources) < len(delivery.evidence):
        return told(CHANGED)
    if not await _everybody_sees(errand, sources, desk):
        return told(NOT_FOR_ALL)
    await _post(errand, shared, sources, desk)
    return told(SHARED)


async def judge(errand: Errand, value: str, is_helpful: bool, desk: Desk) -> Reply:
    """Keep whether an answer helped."""
    read = read_judgement_value(value)
    if read is None:
        return told(UNKNOWN)
    delivery_id, question = read
    request = slack_pb2.RecordFeedbackRequest(
        workspace_id=errand.asker.workspace_id,
        delivery_id=delivery_id,
        person_id=errand.asker.person_id,
        is_helpful=is_helpful,
        question=question,
    )
    await reach("ingest", desk.stages.feedback.RecordFeedback, request, RECORD_SECONDS)
    return told(THANKS)


async def _post(
    errand: Errand, shared: Shared, sources: Sequence[corpus_pb2.Message], desk: Desk
) -> None:
    place, client = errand.place, errand.asker.client

    async def post(delivery_id: str) -> str:
        blocks = lay_out_shared(shared, sources, errand.asker.person_id)
        text = escape(shared.question[:200])
        shown = Post(text, blocks, delivery_id)
        return await post_to_conversation(client, place.channel_id, place.thread_ts, shown)

    async def find(delivery_id: str) -> str:
        return await find_post(client, place.channel_id, place.thread_ts, delivery_id)

    record = slack_pb2.Delivery(
        workspace_id=errand.asker.workspace_id,
        job_id=errand.job.job_id,
        purpose=SHARE,
        channel_id=place.channel_id,
        person_id=place.person_id,
        evidence=[
            slack_pb2.EvidenceRef(message_id=m.message_id, content_sha256=m.content_sha256)
            for m in sources
        ],
        outcome="answered",
    )
    await once(errand.job, record, post, find, desk)


async def _delivery(errand: Errand, delivery_id: str, desk: Desk) -> slack_pb2.Delivery | None:
    request = slack_pb2.GetDeliveryRequest(
        workspace_id=errand.asker.workspace_id, delivery_id=delivery_id
    )
    get = desk.stages.deliveries.GetDelivery
    try:
        return (await reach("ingest", get, request, RECORD_SECONDS)).delivery
    except CallError as error:
        if error.code is grpc.StatusCode.NOT_FOUND:
            return None
        raise


async def _unchanged_sources(
    errand: Errand, evidence: Sequence[slack_pb2.EvidenceRef], desk: Desk
) -> list[corpus_pb2.Message]:
    """The sources that the person may still read and that read the same."""
    context = await query_context(errand.asker, desk, fresh=True)
    seconds = deadline_in(time.monotonic, CHECK_SECONDS).share(REREAD_SECONDS)
    request = retrieve_pb2.ReadMessagesRequest(
        context=context, message_ids=[ref.message_id for ref in evidence]
    )
    read = await reach("retrieve", desk.stages.retriever.ReadMessages, request, seconds)
    hashes = {ref.message_id: ref.content_sha256 for ref in evidence}
    return [m for m in read.messages if hashes.get(m.message_id) == m.content_sha256]


async def _everybody_sees(
    errand: Errand, sources: Sequence[corpus_pb2.Message], desk: Desk
) -> bool:
    """Whether every source is in this channel, or in one that everybody of the team can see.

    People of another company in a shared channel see nothing of the team's public channels.
    """
    here = errand.place.channel_id
    elsewhere = {message.channel_id for message in sources} - {here}
    if not elsewhere:
        return True
    about = (await errand.asker.client.call("conversations.info", channel=here))["channel"]
    if about.get("is_ext_shared") or about.get("is_pending_ext_shared"):
        return False
    return elsewhere <= await _public_ids(errand.asker.workspace_id, desk)


async def _public_ids(workspace_id: str, desk: Desk) -> set[str]:
    # Read past the directory's short memory: a channel may have become private just now.
    request = ingest_pb2.ListChannelsRequest(workspace_id=workspace_id)
    listed = await reach("ingest", desk.stages.directory.ListChannels, request, RECORD_SECONDS)
    return {channel.channel_id for channel in listed.channels if is_public(channel)}
