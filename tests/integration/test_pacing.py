"""Rules of the pace: one table for all workers, Slack's word obeyed, others go on."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import pytest

from services.ingest.pacing import Pace, Slots, read_pace
from services.ingest.reconcile import ask_for_what_is_due
from services.runtime import db
from tests.integration.history_fixtures import HISTORY, REPLIES, Reader, gaps
from tests.integration.ingest_fixtures import Rows

NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)
HOURS = 24
CHANNELS = 20


@pytest.fixture(autouse=True)
def _workspaces(rows: Rows) -> None:
    for name in ("V1", "V2"):
        rows.execute("INSERT INTO workspaces (workspace_id, source) VALUES (%s, 'slack')", name)


async def reserve(
    pool: db.Pool, workspace_id: str = "V1", method: str = HISTORY, patience: float = 1e6
) -> float | None:
    async with db.writing(pool, workspace_id) as connection:
        slots = Slots(connection, workspace_id, Pace(), NOON)
        return await slots.reserve(method, patience)


async def test_workers_that_reserve_at_once_get_slots_of_their_own(ingest_pool: db.Pool) -> None:
    waits = await asyncio.gather(*(reserve(ingest_pool) for _ in range(5)))
    assert sorted(wait for wait in waits if wait is not None) == [0, 60, 120, 180, 240]


async def test_methods_and_workspaces_have_slots_of_their_own(ingest_pool: db.Pool) -> None:
    assert await reserve(ingest_pool) == 0
    assert await reserve(ingest_pool, method=REPLIES) == 0
    assert await reserve(ingest_pool, "V2") == 0
    assert await reserve(ingest_pool) == 60


async def test_a_slot_that_is_far_away_is_left_to_whoever_comes_then(
    ingest_pool: db.Pool,
) -> None:
    assert await reserve(ingest_pool) == 0
    assert await reserve(ingest_pool, patience=59) is None
    assert await reserve(ingest_pool, patience=60) == 60


async def test_a_workspace_s_own_pace_goes_before_the_process_s(
    ingest_pool: db.Pool, rows: Rows
) -> None:
    rows.execute(
        "UPDATE workspaces SET history_interval_seconds = 1.2, history_page_size = 200 "
        "WHERE workspace_id = 'V1'"
    )
    async with db.reading(ingest_pool, "V1") as connection:
        assert await read_pace(connection, "V1", Pace(30, 100)) == Pace(1.2, 200)
    async with db.reading(ingest_pool, "V2") as connection:
        assert await read_pace(connection, "V2", Pace(30, 100)) == Pace(30, 100)


async def test_a_refusal_without_a_time_is_no_tight_loop(reader: Reader) -> None:
    """429 without Retry-After, then with 0, then a page."""
    reader.rows.execute("UPDATE workspaces SET history_interval_seconds = 0.05")
    reader.control.use_tier("unlimited")
    reader.channel("engineering")
    wanted = reader.fill("engineering", 20)
    reader.control.add_fault(HISTORY, "ratelimited")
    reader.control.add_fault(HISTORY, "ratelimited", retry_after=0)
    await reader.list_all()
    await reader.work()
    assert reader.stored() == sorted(wanted)
    calls = reader.control.calls(HISTORY)
    assert [call.error for call in calls] == ["ratelimited", "ratelimited", "", ""]
    first, second, last = gaps(calls)
    assert first >= 1
    assert second >= 2
    assert last < 1


async def test_retry_after_holds_one_method_and_the_other_goes_on(reader: Reader) -> None:
    reader.channel("engineering")
    root = reader.post("engineering", "root", 90_000)
    replies = [reader.post("engineering", f"{n}", 80_000 - n, thread=root) for n in range(60)]
    reader.fill("engineering", 14)
    older = [reader.post("engineering", "old", 100_000 + n) for n in range(20)]
    reader.control.add_fault(HISTORY, "ratelimited", retry_after=600, on_calls=[2])
    await reader.list_all()
    await reader.work(end=reader.clock.now + 500)
    assert len(reader.control.calls(HISTORY)) == 2
    assert set(replies) <= set(reader.stored())
    await reader.work()
    assert set(older) <= set(reader.stored())
    assert gaps(reader.control.calls(HISTORY))[1] >= 600


async def test_a_channel_that_is_refused_lets_the_others_go_first(reader: Reader) -> None:
    for name in ("a", "b", "c"):
        reader.channel(name)
        reader.fill(name, 5)
    reader.control.add_fault(HISTORY, "ratelimited", channel="b", times=None, retry_after=1)
    await reader.list_all()
    await reader.work(end=reader.clock.now + 600)
    assert {name for name, state in reader.states().items() if state == "complete"} == {"a", "c"}


async def test_a_page_that_slack_cuts_short_is_not_the_end(reader: Reader) -> None:
    """200 rows asked for, 15 given, has_more true."""
    reader.rows.execute("UPDATE workspaces SET history_page_size = 200")
    reader.channel("engineering")
    wanted = reader.fill("engineering", 100)
    await reader.list_all()
    await reader.work()
    assert reader.stored() == sorted(wanted)
    assert {call.arguments["limit"] for call in reader.control.calls(HISTORY)} == {"200"}


async def test_the_default_pace_is_one_request_a_minute_over_a_whole_day(reader: Reader) -> None:
    """Enough to read for 24 hours by each method; Slack's strict tier refuses a call too many."""
    end = reader.clock.now + HOURS * 3600
    for number in range(CHANNELS):
        reader.channel(f"channel-{number}")
        _fill_for_a_day(reader, f"channel-{number}")
    await reader.list_all()
    while reader.clock.now < end:
        await reader.work(end=min(end, reader.clock.now + 3600))
        await ask_for_what_is_due(reader.backfill.resources, reader.backfill.now)
    for method in (HISTORY, REPLIES):
        calls = reader.control.calls(method)
        assert all(call.error == "" for call in calls)
        assert min(gaps(calls)) >= 60
        assert HOURS * 60 - 15 <= len(calls) <= HOURS * 60


def _fill_for_a_day(reader: Reader, channel: str) -> None:
    """A twentieth of 1,500 pages each, nearly all of them notices, which cost no index."""
    for number in range(75 * 15):
        ts = reader.ts(600 + 60 * number)
        reader.post(channel, "joined", 0, ts=ts, subtype="channel_join")
    for number in range(38):
        root = reader.post(channel, "root", 0, ts=reader.ts(600 + 60 * number, 700))
        for reply in range(20):
            ts = f"{root[:-6]}{800 + reply:06}"
            reader.post(channel, "joined", 0, ts=ts, thread=root, subtype="channel_join")
