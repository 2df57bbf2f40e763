"""Rules of reading again: what no event told is found, and nothing else is asked for or lost."""

from __future__ import annotations

from services.ingest.channel_history import RECENT_DAYS
from services.ingest.reconcile import ask_for_what_is_due, reconcile_after_restart
from services.ingest.start_backfill import start_backfill
from tests.integration.history_fixtures import HISTORY, REPLIES, Reader

DAY = 86_400.0


async def read_first(reader: Reader) -> None:
    """The first reading of everything; what follows is counted from here."""
    await reader.list_all()
    await reader.work()
    assert set(reader.states().values()) == {"complete"}


async def test_a_late_reply_to_an_old_thread_is_found_and_nothing_else_is_asked_for(
    reader: Reader,
) -> None:
    """Two hours after the root was read, when a poll of what is new would not show the root."""
    reader.channel("engineering")
    root = reader.post("engineering", "a question", 7_000)
    quiet = reader.post("engineering", "another", 6_900)
    first = [reader.post("engineering", "early", 6_800, thread=root)]
    first.append(reader.post("engineering", "early", 6_700, thread=quiet))
    await read_first(reader)
    late = reader.post("engineering", "late", -1, thread=root)
    before = len(reader.control.calls(REPLIES))
    await reader.reconcile()
    await reader.work()
    assert late in reader.stored()
    asked = reader.control.calls(REPLIES)[before:]
    assert [call.arguments["ts"] for call in asked] == [root]


async def test_a_thread_that_events_kept_true_is_not_read_again(reader: Reader) -> None:
    """The reply is stored as its event would store it before the day is over."""
    channel = reader.channel("engineering")
    root = reader.post("engineering", "a question", 7_000)
    reader.post("engineering", "early", 6_800, thread=root)
    await read_first(reader)
    late = reader.post("engineering", "late", -1, thread=root)
    reader.rows.execute(
        "INSERT INTO messages (workspace_id, message_id, channel_id, ts, author_id, posted_at, "
        "thread_root_id, text, content_sha256) SELECT workspace_id, replace(message_id, ts, %s), "
        "channel_id, %s, author_id, to_timestamp(%s::numeric), message_id, 'late', 'x' "
        "FROM messages WHERE ts = %s AND channel_id = %s",
        late,
        late,
        late,
        root,
        channel,
    )
    before = len(reader.control.calls(REPLIES))
    await reader.reconcile()
    await reader.work()
    assert len(reader.control.calls(REPLIES)) == before


async def test_messages_edits_and_deletions_that_no_event_told_are_found(reader: Reader) -> None:
    reader.channel("engineering")
    messages = reader.fill("engineering", 40, step_seconds=600)
    root = reader.post("engineering", "root", 5_000)
    replies = [reader.post("engineering", f"{n}", 4_000 - n, thread=root) for n in range(3)]
    await read_first(reader)
    reader.clock.now += 3_600
    new = reader.post("engineering", "missed", 100)
    reader.control.edit("engineering", messages[20], "corrected")
    for ts in (messages[0], messages[7], messages[30], replies[1]):
        reader.control.delete("engineering", ts)
    await reader.reconcile()
    await reader.work()
    gone = {messages[0], messages[7], messages[30], replies[1]}
    assert reader.stored() == sorted({*messages, root, *replies, new} - gone)
    assert reader.rows.all("SELECT text FROM messages WHERE ts = %s", messages[20]) == [
        ("corrected",)
    ]
    tombstones = reader.rows.all("SELECT message_id FROM tombstones")
    assert {row[0].rsplit(":", 1)[1] for row in tombstones} == gone


async def test_all_replies_of_a_thread_may_be_gone_and_its_root_too(reader: Reader) -> None:
    reader.channel("engineering")
    kept = reader.fill("engineering", 3)
    emptied = reader.post("engineering", "root", 5_000)
    lost = reader.post("engineering", "root", 4_500)
    replies = [
        reader.post("engineering", "reply", 4_000, thread=emptied),
        reader.post("engineering", "reply", 3_900, thread=lost),
    ]
    await read_first(reader)
    reader.clock.now += 3_600
    for ts in (*replies, lost):
        reader.control.delete("engineering", ts)
    await reader.reconcile()
    await reader.work()
    assert reader.stored() == sorted([*kept, emptied])


async def test_a_deleted_root_goes_and_its_replies_stay(reader: Reader) -> None:
    reader.channel("engineering")
    root = reader.post("engineering", "root", 5_000)
    reply = reader.post("engineering", "reply", 4_000, thread=root)
    await read_first(reader)
    reader.control.delete("engineering", root)
    await reader.reconcile()
    await reader.work()
    assert reader.stored() == [reply]


async def test_nothing_is_taken_for_deleted_that_a_page_could_not_show(reader: Reader) -> None:
    """An empty page, a page that failed, and messages older than the days read again."""
    reader.channel("engineering")
    old = reader.fill("engineering", 5, step_seconds=(RECENT_DAYS + 2) * DAY)
    reader.channel("design")
    new = reader.fill("design", 5)
    await read_first(reader)
    reader.control.delete("engineering", old[2])
    for ts in new:
        reader.control.delete("design", ts)
    await reader.reconcile()
    await reader.work()
    assert reader.stored() == sorted([*old, *new])


async def test_only_the_last_days_are_read_again(reader: Reader) -> None:
    channel = reader.channel("engineering")
    reader.fill("engineering", 300, step_seconds=3_600)
    await read_first(reader)
    before = len(reader.control.calls(HISTORY))
    await reader.reconcile()
    await reader.work()
    # 6 days of the 7 hold 144 messages: 10 pages of 15.
    assert len(reader.control.calls(HISTORY)) - before == 10
    passes = reader.rows.all(
        "SELECT pass_number, first_pass_pages, pages_read FROM channel_history "
        "WHERE channel_id = %s",
        channel,
    )
    assert passes == [(2, 20, 30)]


async def test_after_a_long_absence_all_of_it_is_looked_for(reader: Reader) -> None:
    """Twenty days without any process; the window alone would miss thirteen of them."""
    reader.channel("engineering")
    reader.fill("engineering", 30)
    await read_first(reader)
    missed = [reader.post("engineering", "missed", -day * DAY) for day in range(1, 20)]
    reader.clock.now += 20 * DAY
    await reconcile_after_restart(reader.backfill.resources, reader.backfill.now)
    await reader.work()
    assert set(missed) <= set(reader.stored())


async def test_a_channel_is_due_again_a_day_after_each_reading(reader: Reader) -> None:
    reader.channel("engineering")
    reader.fill("engineering", 3)
    await read_first(reader)
    for day in range(1, 4):
        reader.clock.now += DAY - 60
        await ask_for_what_is_due(reader.backfill.resources, reader.backfill.now)
        await reader.work()
        assert len(reader.control.calls(HISTORY)) == day
        reader.clock.now += 120
        await ask_for_what_is_due(reader.backfill.resources, reader.backfill.now)
        await reader.work()
        assert len(reader.control.calls(HISTORY)) == day + 1


async def test_a_restart_makes_every_complete_channel_due_but_not_twice_in_ten_minutes(
    reader: Reader,
) -> None:
    for name in ("a", "b"):
        reader.channel(name)
        reader.fill(name, 3)
    await read_first(reader)
    reader.clock.now += 3_600
    for _ in range(5):
        await reconcile_after_restart(reader.backfill.resources, reader.backfill.now)
        await ask_for_what_is_due(reader.backfill.resources, reader.backfill.now)
        await reader.work()
    assert len(reader.control.calls(HISTORY)) == 4
    reader.clock.now += 601
    await ask_for_what_is_due(reader.backfill.resources, reader.backfill.now)
    await reader.work()
    assert len(reader.control.calls(HISTORY)) == 6


async def test_a_killed_second_reading_goes_on_where_it_was(reader: Reader) -> None:
    reader.channel("engineering")
    reader.fill("engineering", 90)
    await read_first(reader)
    reader.clock.now += 3_600
    new = reader.post("engineering", "missed", 100)
    before = len(reader.control.calls(HISTORY))
    await reader.reconcile()
    await reader.kill_during(HISTORY, 3)
    await reader.work()
    assert new in reader.stored()
    # 91 messages are 7 pages, the one that the kill cost, and one sent too soon after it.
    assert 8 <= len(reader.control.calls(HISTORY)) - before <= 9


async def test_first_readings_and_repeated_ones_take_turns(reader: Reader) -> None:
    for number in range(4):
        reader.channel(f"known-{number}")
        reader.fill(f"known-{number}", 3)
    await read_first(reader)
    new = reader.channel("new")
    reader.fill("new", 60)
    await reader.take_up(new)
    before = len(reader.control.calls(HISTORY))
    await reader.reconcile()
    await reader.work()
    asked = [call.arguments["channel"] == new for call in reader.control.calls(HISTORY)[before:]]
    assert asked == [True, False] * 4 or asked == [False, True] * 4


async def test_who_asks_for_a_channel_s_history_gets_all_of_it_read_again(
    reader: Reader,
) -> None:
    """An edited reply deep in an old thread: nothing but reading it again can show it."""
    channel = reader.channel("engineering")
    reader.channel("design")
    reader.fill("design", 3)
    root = reader.post("engineering", "root", 30 * DAY)
    reply = reader.post("engineering", "reply", 29 * DAY, thread=root)
    await read_first(reader)
    before = len(reader.control.calls(HISTORY, channel="design"))
    reader.control.edit("engineering", reply, "corrected")
    assert await start_backfill(reader.backfill.resources, "W", channel) == 1
    await reader.work()
    assert reader.rows.all("SELECT text FROM messages WHERE ts = %s", reply) == [("corrected",)]
    assert len(reader.control.calls(HISTORY, channel="design")) == before


async def test_after_a_gap_only_what_is_recent_is_asked_for(reader: Reader) -> None:
    for name in ("a", "b"):
        reader.channel(name)
        reader.fill(name, 300, step_seconds=3_600)
    await read_first(reader)
    reader.rows.execute("UPDATE channel_history SET reconciled_at = now() - interval '1 day'")
    before = len(reader.control.calls(HISTORY))
    assert await start_backfill(reader.backfill.resources, "W", only_recent=True) == 2
    await reader.work()
    assert len(reader.control.calls(HISTORY)) - before == 2 * 12
