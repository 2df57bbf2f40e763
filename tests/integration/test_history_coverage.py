"""Rules of what a status tells of history: how far back, how fresh, what failed, how long yet."""

from __future__ import annotations

from recall.ingest.v1 import ingest_pb2
from services.corpus import instant
from services.ingest.timestamps import instant_of
from tests.integration.history_fixtures import HISTORY, REPLIES, WORKSPACE, Reader
from tests.integration.ingest_fixtures import Ingest, Rows, call_fails


async def coverage(
    ingest: Ingest, *channel_ids: str
) -> tuple[ingest_pb2.GetCoverageResponse, dict[str, ingest_pb2.ChannelCoverage]]:
    """The reply, and its channels by name."""
    request = ingest_pb2.GetCoverageRequest(workspace_id=WORKSPACE, channel_ids=channel_ids)
    reply = await ingest.ingest.GetCoverage(request)
    return reply, {channel.channel_name: channel for channel in reply.channels}


async def test_a_channel_under_way_tells_how_far_back_it_is_read(
    reader: Reader, ingest: Ingest
) -> None:
    reader.channel("engineering")
    messages = reader.fill("engineering", 40)
    await reader.list_all()
    await reader.work(end=reader.clock.now + 70)
    reply, channels = await coverage(ingest)
    found = channels["engineering"]
    assert found.history_state == "reading"
    assert instant(found.read_down_to) == instant_of(messages[29])
    assert not found.HasField("completed_at")
    assert reply.HasField("seconds_left")
    await reader.work()
    reply, channels = await coverage(ingest)
    found = channels["engineering"]
    assert found.history_state == "complete"
    assert found.HasField("completed_at")
    assert not found.HasField("read_down_to")
    assert not reply.HasField("seconds_left")


async def test_a_pause_that_slack_asked_for_is_part_of_the_estimate(
    reader: Reader, ingest: Ingest, rows: Rows
) -> None:
    reader.channel("engineering")
    reader.fill("engineering", 40)
    await reader.list_all()
    await reader.work(end=reader.clock.now + 70)
    held = "UPDATE pacing SET next_at = now() + make_interval(hours => %s) WHERE method = %s"
    rows.execute(held, 0, HISTORY)
    before, _ = await coverage(ingest)
    rows.execute(held, 2, HISTORY)
    during, _ = await coverage(ingest)
    # Two hours less the usual interval, give or take what passes between the two looks.
    assert during.seconds_left - before.seconds_left > 6_000


async def test_a_second_reading_leaves_a_channel_complete(reader: Reader, ingest: Ingest) -> None:
    reader.channel("engineering")
    reader.fill("engineering", 40)
    await reader.list_all()
    await reader.work()
    await reader.reconcile()
    await reader.work(end=reader.clock.now + 10)
    reply, channels = await coverage(ingest)
    assert channels["engineering"].history_state == "complete"
    assert not reply.HasField("seconds_left")


async def test_what_failed_is_named(reader: Reader, ingest: Ingest) -> None:
    reader.channel("broken")
    reader.channel("engineering")
    root = reader.post("engineering", "root", 9_000)
    reader.post("engineering", "reply", 8_000, thread=root)
    reader.control.add_fault(HISTORY, "error", channel="broken", times=None, error="fatal_error")
    reader.control.add_fault(REPLIES, "http", times=3)
    await reader.list_all()
    await reader.work(end=reader.clock.now + 400)
    _, channels = await coverage(ingest)
    assert channels["broken"].history_state == "failed"
    assert channels["broken"].history_error == "fatal_error"
    assert channels["engineering"].history_state == "complete"
    assert channels["engineering"].history_error == "HTTP 503"
    assert channels["engineering"].threads_failed == 1


async def test_nothing_is_estimated_before_anything_is_known_or_while_nothing_can_be_read(
    reader: Reader, ingest: Ingest
) -> None:
    reader.channel("engineering")
    reader.fill("engineering", 40)
    await reader.list_all()
    reader.control.add_fault(HISTORY, "error", error="token_revoked", on_calls=[1])
    await reader.work()
    reply, channels = await coverage(ingest)
    assert channels["engineering"].history_error == "token_revoked"
    assert not reply.HasField("seconds_left")


async def test_who_sees_only_what_is_read_is_told_of_no_time_left(
    reader: Reader, ingest: Ingest
) -> None:
    done = reader.channel("a")
    reader.fill("a", 3)
    reader.channel("b")
    reader.fill("b", 60)
    await reader.list_all()
    await reader.work(end=reader.clock.now + 70)
    assert (await coverage(ingest))[0].HasField("seconds_left")
    assert not (await coverage(ingest, done))[0].HasField("seconds_left")


async def test_a_backfill_is_started_over_the_wire(reader: Reader, ingest: Ingest) -> None:
    channel = reader.channel("engineering")
    reader.fill("engineering", 3)
    await reader.list_all()
    await reader.work()
    request = ingest_pb2.StartBackfillRequest(workspace_id=WORKSPACE)
    assert (await ingest.ingest.StartBackfill(request)).channels == 1
    await reader.work()
    request.channel_id = channel
    assert (await ingest.ingest.StartBackfill(request)).channels == 1
    await reader.work()
    assert len(reader.control.calls(HISTORY)) == 3


async def test_history_is_not_asked_for_where_nothing_can_be_read(
    reader: Reader, ingest: Ingest
) -> None:
    reader.rows.execute("INSERT INTO workspaces (workspace_id, source) VALUES ('V', 'slack')")
    with call_fails() as errors:
        await ingest.ingest.StartBackfill(ingest_pb2.StartBackfillRequest(workspace_id="V"))
    assert "No Slack app is installed" in errors[0].message
    with call_fails() as errors:
        await ingest.ingest.StartBackfill(
            ingest_pb2.StartBackfillRequest(workspace_id=WORKSPACE, channel_id="C404")
        )
    assert "C404" in errors[0].message
