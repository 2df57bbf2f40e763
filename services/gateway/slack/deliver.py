"""One visible answer a command: checked once more, recorded, posted, recorded.

A crash between the two records is resolved by looking where the post can be found again. Where it
can not (a post that only one person sees), the delivery is in doubt and is not posted again: one
answer that may be missing is better than two.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

import structlog

from recall.corpus.v1 import corpus_pb2
from recall.ingest.v1 import jobs_pb2, slack_pb2
from services.gateway.clients import reach
from services.gateway.deadline import deadline_in
from services.gateway.reread import still_unchanged
from services.gateway.slack.asker import Asker, Desk, query_context
from services.gateway.slack.blocks import Layout, fallback_text, lay_out
from services.gateway.slack.posting import Place, Post, find_post, post_to_person
from services.gateway.slack.replies import SUPPRESSED, TOLD, Reply, suppressed
from services.gateway.slack.web_api import SlackAwayError, SlackBusyError, SlackRefusedError

RECORD_SECONDS = 5.0
CHECK_SECONDS = 15.0
ANSWER = "answer"

_STATES = slack_pb2.DeliveryState

log = structlog.get_logger("deliver")


@dataclass(frozen=True)
class Errand:
    """Whose command is answered, under which claim, and where."""

    job: jobs_pb2.ClaimedJob
    asker: Asker
    place: Place


Poster = Callable[[str], Awaitable[str]]
Finder = Callable[[str], Awaitable[str]]


async def deliver(
    errand: Errand, reply: Reply, context: corpus_pb2.QueryContext, desk: Desk
) -> None:
    """Show the reply, or withhold it when it no longer stands. Raises SlackError and CallError.

    ``context`` is what the reply was made under.
    """
    reply = await _as_it_stands(errand.asker, reply, context, desk)
    place, client = errand.place, errand.asker.client

    async def post(delivery_id: str) -> str:
        layout = Layout(delivery_id, can_share=bool(place.channel_id) and not place.is_direct)
        shown = Post(fallback_text(reply), lay_out(reply, layout), delivery_id)
        return await post_to_person(client, place, shown)

    async def find(delivery_id: str) -> str:
        return await find_post(client, place.channel_id, place.thread_ts, delivery_id)

    record = slack_pb2.Delivery(
        workspace_id=errand.asker.workspace_id,
        job_id=errand.job.job_id,
        purpose=ANSWER,
        channel_id=place.channel_id,
        person_id=place.person_id,
        evidence=reply.evidence(),
        outcome=reply.outcome,
    )
    await once(errand.job, record, post, find if place.is_direct else None, desk)


async def once(
    job: jobs_pb2.ClaimedJob,
    record: slack_pb2.Delivery,
    post: Poster,
    find: Finder | None,
    desk: Desk,
) -> None:
    """Post what a delivery records, once. ``find`` is None where a post can not be looked at.

    One that failed before was certainly not posted; ingest begins it anew.
    """
    begin = slack_pb2.BeginDeliveryRequest(delivery=record, claim_number=job.claim_number)
    begun = await reach("ingest", desk.stages.deliveries.BeginDelivery, begin, RECORD_SECONDS)
    delivery, is_new = begun.delivery, begun.is_new
    if delivery.state != _STATES.DELIVERY_STATE_BEGUN:
        return
    if not is_new and find is None:
        await _finish(delivery, _STATES.DELIVERY_STATE_IN_DOUBT, desk, reason=UNSEEN)
        return
    found = await find(delivery.delivery_id) if find and not is_new else ""
    try:
        message_ts = found or await post(delivery.delivery_id)
    except SlackAwayError as error:
        if find is not None:
            raise
        await _finish(delivery, _STATES.DELIVERY_STATE_IN_DOUBT, desk, reason=str(error))
        return
    except (SlackRefusedError, SlackBusyError) as error:
        await _finish(delivery, _STATES.DELIVERY_STATE_FAILED, desk, reason=str(error))
        raise
    await _finish(delivery, _ended(record), desk, message_ts)


UNSEEN = "It may have been posted before a crash; only the person could see it."


async def _finish(
    delivery: slack_pb2.Delivery,
    state: slack_pb2.DeliveryState.ValueType,
    desk: Desk,
    message_ts: str = "",
    reason: str = "",
) -> None:
    request = slack_pb2.FinishDeliveryRequest(
        workspace_id=delivery.workspace_id,
        delivery_id=delivery.delivery_id,
        state=state,
        message_ts=message_ts,
        reason=reason,
    )
    await reach("ingest", desk.stages.deliveries.FinishDelivery, request, RECORD_SECONDS)
    log.info("delivery ended", delivery=delivery.delivery_id, state=_STATES.Name(state))


def _ended(record: slack_pb2.Delivery) -> slack_pb2.DeliveryState.ValueType:
    withheld = record.outcome == SUPPRESSED
    return _STATES.DELIVERY_STATE_SUPPRESSED if withheld else _STATES.DELIVERY_STATE_DELIVERED


async def _as_it_stands(
    asker: Asker, reply: Reply, context: corpus_pb2.QueryContext, desk: Desk
) -> Reply:
    """The reply when everything it rests on reads the same and may still be read; else withheld.

    Slack is asked again for the person's channels. A channel they left meanwhile withholds the
    reply even when nothing of it is cited: what was written may rest on more than it cites.
    """
    if reply.outcome in (TOLD, SUPPRESSED):
        return replace(reply, sources=())
    now = await query_context(asker, desk, fresh=True)
    if set(context.channel_ids) - set(now.channel_ids):
        return suppressed(reply)
    deadline = deadline_in(time.monotonic, CHECK_SECONDS)
    kept = await still_unchanged(reply.sources, now, desk.stages, deadline)
    return reply if len(kept) == len({m.message_id for m in reply.sources}) else suppressed(reply)
