"""Rules of deliveries and feedback, over real gRPC."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc
import pytest

from recall.error.v1 import error_pb2
from recall.ingest.v1 import jobs_pb2, slack_pb2
from services.ingest import queue
from services.ingest.backoff import NextRun
from services.ingest.queue import Job, NewJob
from services.ingest.resources import Resources
from services.runtime import db
from tests.integration.ingest_fixtures import Ingest, Rows, call_fails

W = "W"
BEGUN = slack_pb2.DELIVERY_STATE_BEGUN
DELIVERED = slack_pb2.DELIVERY_STATE_DELIVERED
SUPPRESSED = slack_pb2.DELIVERY_STATE_SUPPRESSED
FAILED = slack_pb2.DELIVERY_STATE_FAILED
IN_DOUBT = slack_pb2.DELIVERY_STATE_IN_DOUBT

EVIDENCE = [
    slack_pb2.EvidenceRef(message_id="slack:T1:C1:2.000000", content_sha256="bb"),
    slack_pb2.EvidenceRef(message_id="slack:T1:C1:1.000000", content_sha256="aa"),
]


@pytest.fixture
async def command(resources: Resources, rows: Rows) -> Job:
    """A command that somebody holds."""
    rows.execute("INSERT INTO workspaces (workspace_id, source) VALUES ('W', 'slack')")
    async with db.writing(resources.pool, W) as connection:
        await queue.enqueue(connection, W, NewJob("command", "k", {"text": "ask where?"}))
    return await claimed(resources)


async def claimed(resources: Resources) -> Job:
    (job,) = await queue.claim(resources.queue_pool, ("command",))
    return job


def intention(job: Job, purpose: str = "answer", **fields: Any) -> slack_pb2.BeginDeliveryRequest:
    delivery = slack_pb2.Delivery(
        workspace_id=job.workspace_id,
        job_id=job.job_id,
        purpose=purpose,
        channel_id="C1",
        person_id="U1",
        evidence=EVIDENCE,
        outcome="answered",
    )
    delivery.MergeFrom(slack_pb2.Delivery(**fields))
    return slack_pb2.BeginDeliveryRequest(delivery=delivery, claim_number=job.claim_number)


def end(delivery: slack_pb2.Delivery, state: int, **fields: Any) -> slack_pb2.FinishDeliveryRequest:
    return slack_pb2.FinishDeliveryRequest(
        workspace_id=delivery.workspace_id,
        delivery_id=delivery.delivery_id,
        state=slack_pb2.DeliveryState.ValueType(state),
        **fields,
    )


async def test_a_delivery_is_recorded_before_it_is_posted_and_after(
    ingest: Ingest, command: Job
) -> None:
    begun = await ingest.deliveries.BeginDelivery(intention(command))
    assert begun.is_new and begun.delivery.state == BEGUN
    finished = await ingest.deliveries.FinishDelivery(
        end(begun.delivery, DELIVERED, message_ts="9.000100")
    )
    found = await ingest.deliveries.GetDelivery(
        slack_pb2.GetDeliveryRequest(workspace_id=W, delivery_id=begun.delivery.delivery_id)
    )
    assert found.delivery == finished.delivery
    assert (found.delivery.state, found.delivery.message_ts) == (DELIVERED, "9.000100")
    assert list(found.delivery.evidence) == EVIDENCE
    assert (found.delivery.channel_id, found.delivery.person_id) == ("C1", "U1")
    assert (found.delivery.outcome, found.delivery.purpose) == ("answered", "answer")


async def test_one_of_many_calls_at_once_begins_the_delivery(ingest: Ingest, command: Job) -> None:
    calls = (ingest.deliveries.BeginDelivery(intention(command)) for _ in range(8))
    replies = await asyncio.gather(*calls)
    assert [reply.is_new for reply in replies].count(True) == 1
    assert len({reply.delivery.delivery_id for reply in replies}) == 1


async def test_a_command_has_one_delivery_for_each_purpose(ingest: Ingest, command: Job) -> None:
    answer = await ingest.deliveries.BeginDelivery(intention(command, ""))
    share = await ingest.deliveries.BeginDelivery(intention(command, "share"))
    again = await ingest.deliveries.BeginDelivery(intention(command, "answer"))
    assert (answer.is_new, share.is_new, again.is_new) == (True, True, False)
    assert again.delivery == answer.delivery


async def test_the_next_holder_finds_what_a_crashed_one_began(
    ingest: Ingest, command: Job, resources: Resources, rows: Rows
) -> None:
    first = await ingest.deliveries.BeginDelivery(intention(command))
    rows.execute("UPDATE jobs SET heartbeat_at = now() - interval '6 s'")
    successor = await claimed(resources)
    found = await ingest.deliveries.BeginDelivery(intention(successor, person_id="U2"))
    assert (found.is_new, found.delivery) == (False, first.delivery)
    ended = await ingest.deliveries.FinishDelivery(end(found.delivery, IN_DOUBT))
    assert ended.delivery.state == IN_DOUBT
    last = await ingest.deliveries.BeginDelivery(intention(successor))
    assert (last.is_new, last.delivery.state) == (False, IN_DOUBT)


@pytest.mark.parametrize("fate", ["claimed anew", "done", "dead", "released"])
async def test_who_lost_the_job_can_not_begin_a_delivery(
    ingest: Ingest, command: Job, resources: Resources, rows: Rows, fate: str
) -> None:
    if fate == "claimed anew":
        rows.execute("UPDATE jobs SET heartbeat_at = now() - interval '6 s'")
        await claimed(resources)
    elif fate == "done":
        await queue.complete(resources.queue_pool, command)
    elif fate == "dead":
        await queue.fail(resources.queue_pool, command, NextRun(8, None), "broken")
    else:
        await queue.release(resources.queue_pool, command)
    with call_fails() as errors:
        await ingest.deliveries.BeginDelivery(intention(command))
    assert errors[0].code == grpc.StatusCode.ABORTED
    assert errors[0].reason == error_pb2.ERROR_REASON_CLAIM_LOST
    assert rows.one("SELECT count(*) FROM deliveries") == 0


async def test_a_delivery_that_could_not_be_posted_is_begun_anew(
    ingest: Ingest, command: Job
) -> None:
    first = (await ingest.deliveries.BeginDelivery(intention(command))).delivery
    await ingest.deliveries.FinishDelivery(end(first, FAILED, reason="Slack is away."))
    again = await ingest.deliveries.BeginDelivery(intention(command, outcome="abstained"))
    assert again.is_new
    assert (again.delivery.delivery_id, again.delivery.state) == (first.delivery_id, BEGUN)
    assert (again.delivery.outcome, again.delivery.reason) == ("abstained", "")


@pytest.mark.parametrize("state", [DELIVERED, SUPPRESSED, IN_DOUBT])
async def test_what_was_seen_or_withheld_is_never_begun_anew(
    ingest: Ingest, command: Job, state: int
) -> None:
    first = (await ingest.deliveries.BeginDelivery(intention(command))).delivery
    ended = await ingest.deliveries.FinishDelivery(end(first, state, reason="why"))
    again = await ingest.deliveries.BeginDelivery(intention(command))
    assert (again.is_new, again.delivery) == (False, ended.delivery)


async def test_the_same_end_twice_changes_nothing_and_another_one_is_refused(
    ingest: Ingest, command: Job, rows: Rows
) -> None:
    begun = (await ingest.deliveries.BeginDelivery(intention(command))).delivery
    first = await ingest.deliveries.FinishDelivery(end(begun, DELIVERED, message_ts="1.000000"))
    before = rows.all("SELECT xmin::text, finished_at FROM deliveries")
    again = await ingest.deliveries.FinishDelivery(end(begun, DELIVERED, message_ts="2.000000"))
    assert again.delivery == first.delivery
    with call_fails() as errors:
        await ingest.deliveries.FinishDelivery(end(begun, SUPPRESSED))
    assert errors[0].code == grpc.StatusCode.FAILED_PRECONDITION
    assert "ended as delivered" in errors[0].message
    assert rows.all("SELECT xmin::text, finished_at FROM deliveries") == before


@pytest.mark.parametrize("state", [slack_pb2.DELIVERY_STATE_UNSPECIFIED, BEGUN])
async def test_an_end_that_is_none_is_refused(ingest: Ingest, command: Job, state: int) -> None:
    begun = (await ingest.deliveries.BeginDelivery(intention(command))).delivery
    with call_fails() as errors:
        await ingest.deliveries.FinishDelivery(end(begun, state))
    assert errors[0].metadata["field"] == "state"


async def test_a_delivery_of_no_job_is_refused(ingest: Ingest, command: Job) -> None:
    request = intention(command)
    request.delivery.job_id = ""
    with call_fails() as errors:
        await ingest.deliveries.BeginDelivery(request)
    assert errors[0].metadata["field"] == "delivery.job_id"


async def test_an_unknown_delivery_is_not_found(ingest: Ingest, command: Job) -> None:
    unknown = slack_pb2.Delivery(workspace_id=W, delivery_id="none")
    judged = slack_pb2.RecordFeedbackRequest(workspace_id=W, delivery_id="none", person_id="U1")
    for call in (
        ingest.deliveries.GetDelivery(
            slack_pb2.GetDeliveryRequest(workspace_id=W, delivery_id="none")
        ),
        ingest.deliveries.FinishDelivery(end(unknown, DELIVERED)),
        ingest.feedback.RecordFeedback(judged),
    ):
        with call_fails() as errors:
            await call
        assert errors[0].code == grpc.StatusCode.NOT_FOUND


async def test_a_person_s_last_judgement_counts_and_names_the_evidence(
    ingest: Ingest, command: Job, rows: Rows
) -> None:
    begun = (await ingest.deliveries.BeginDelivery(intention(command))).delivery
    for person, is_helpful in (("U1", True), ("U2", True), ("U1", False)):
        await ingest.feedback.RecordFeedback(
            slack_pb2.RecordFeedbackRequest(
                workspace_id=W,
                delivery_id=begun.delivery_id,
                person_id=person,
                is_helpful=is_helpful,
                question="where?\0",
            )
        )
    ids = [each.message_id for each in EVIDENCE]
    assert rows.all(
        "SELECT person_id, is_helpful, question, message_ids FROM feedback ORDER BY 1"
    ) == [("U1", False, "where?", ids), ("U2", True, "where?", ids)]


async def test_a_judgement_of_nobody_is_refused(ingest: Ingest, command: Job) -> None:
    with call_fails() as errors:
        await ingest.feedback.RecordFeedback(slack_pb2.RecordFeedbackRequest(workspace_id=W))
    assert errors[0].metadata["field"] == "person_id"


async def test_deliveries_of_another_workspace_are_out_of_reach(
    ingest: Ingest, command: Job, rows: Rows
) -> None:
    rows.execute("INSERT INTO workspaces (workspace_id, source) VALUES ('other', 'slack')")
    begun = (await ingest.deliveries.BeginDelivery(intention(command))).delivery
    for request in (
        slack_pb2.GetDeliveryRequest(workspace_id="other", delivery_id=begun.delivery_id),
    ):
        with call_fails() as errors:
            await ingest.deliveries.GetDelivery(request)
        assert errors[0].code == grpc.StatusCode.NOT_FOUND
    moved = intention(command)
    moved.delivery.workspace_id = "other"
    with call_fails() as errors:
        await ingest.deliveries.BeginDelivery(moved)
    assert errors[0].reason == error_pb2.ERROR_REASON_CLAIM_LOST
    assert (await ingest.jobs.ListJobs(jobs_pb2.ListJobsRequest(workspace_id="other"))).jobs == []
