"""Rules of reading history: newest first, page by page, threads beside, others go on."""

from __future__ import annotations

import asyncio
import time

from services.corpus import slack_message_id
from tests.integration.history_fixtures import HISTORY, REPLIES, Reader
from tests.waiting import until


async def test_every_message_and_reply_of_every_channel_is_stored_once(reader: Reader) -> None:
    wanted = []
    for name in ("engineering", "design"):
        reader.channel(name)
        root = reader.post(name, "A question", 5_000)
        wanted += [*reader.fill(name, 20), root]
        wanted += [reader.post(name, f"answer {n}", 4_000 - n, thread=root) for n in range(17)]
    await reader.list_all()
    await reader.work()
    assert reader.stored() == sorted(wanted)
    assert reader.states() == {"engineering": "complete", "design": "complete"}
    assert {state for state, _ in reader.threads().values()} == {"complete"}


async def test_each_channel_s_newest_page_comes_before_any_second_page(reader: Reader) -> None:
    channels = [reader.channel(name) for name in ("a", "b", "c")]
    for name in ("a", "b", "c"):
        reader.fill(name, 40)
    await reader.list_all()
    await reader.work()
    order = [call.arguments["channel"] for call in reader.calls(HISTORY)]
    assert order == sorted(channels) * 3


async def test_only_channels_that_the_app_is_in_cost_a_call(reader: Reader) -> None:
    """3,000 channels, 5 of them with the app."""
    for number in range(2_995):
        reader.channel(f"other-{number}", with_bot=False)
    for number in range(5):
        reader.channel(f"ours-{number}")
    await reader.list_all()
    await reader.work()
    assert len(reader.states()) == 5
    assert len(reader.control.calls("users.conversations")) == 1
    assert len(reader.control.calls(HISTORY)) == 5


async def test_what_retention_does_not_keep_is_not_asked_for(reader: Reader) -> None:
    reader.rows.execute("UPDATE workspaces SET retention_days = 30")
    reader.channel("engineering")
    kept = reader.post("engineering", "new", 0, ts=f"{int(time.time()) - 10 * 86_400}.000100")
    for day in range(40, 100):
        reader.post("engineering", "old", 0, ts=f"{int(time.time()) - day * 86_400}.000100")
    await reader.list_all()
    await reader.work()
    assert reader.stored() == [kept]
    assert [call.served for call in reader.calls(HISTORY)] == [(kept,)]


async def test_two_messages_of_one_second_survive_the_edge_of_a_page(reader: Reader) -> None:
    """The cursor is lost just between them, so that the ts alone has to hold the place."""
    reader.channel("engineering")
    newer = reader.fill("engineering", 14)
    second, first = reader.ts(3_000, 200), reader.ts(3_000, 100)
    for ts in (first, second):
        reader.post("engineering", ts, 0, ts=ts)
    await reader.list_all()
    reader.control.before_call(HISTORY, "expire_cursors", {}, on_call=2)
    await reader.work()
    assert reader.stored() == sorted([*newer, first, second])
    asked = reader.control.calls(HISTORY)[-1]
    assert asked.arguments["latest"] == second
    assert asked.served == (first,)


async def test_a_ts_keeps_its_six_decimals_all_the_way(reader: Reader) -> None:
    reader.channel("engineering")
    exact = "1439022979.000389"
    reader.post("engineering", "long ago", 0, ts=exact)
    await reader.list_all()
    await reader.work()
    assert reader.stored() == [exact]
    found = reader.rows.all("SELECT message_id, posted_at::text FROM messages")
    assert found[0][0].endswith(f":{exact}")
    assert found[0][1].startswith("2015-08-08 08:36:19.000389")


async def test_the_cursor_of_a_long_thread_may_be_lost_too(reader: Reader) -> None:
    reader.channel("engineering")
    root = reader.post("engineering", "root", 9_000)
    replies = [reader.post("engineering", f"{n}", 8_000 - n, thread=root) for n in range(40)]
    await reader.list_all()
    reader.control.before_call(REPLIES, "expire_cursors", {}, on_call=2)
    reader.control.before_call(REPLIES, "expire_cursors", {}, on_call=4)
    await reader.work()
    assert reader.stored() == sorted([root, *replies])
    served = reader.control.times_served(REPLIES, "engineering")
    assert {served[ts] for ts in replies} == {1}


async def test_replies_are_asked_for_only_where_there_are_any(reader: Reader) -> None:
    """300 messages, 10 with replies; 429 on the calls 4 and 7; a kill during call 5."""
    reader.channel("engineering")
    messages = reader.fill("engineering", 300)
    replies = [
        reader.post("engineering", "reply", 30, ts=f"{root[:-6]}000500", thread=root)
        for root in messages[::30]
    ]
    await reader.list_all()
    reader.control.add_fault(HISTORY, "ratelimited", retry_after=3, on_calls=[4, 7])
    await reader.work(end=reader.clock.now + 200)
    stored = set(reader.stored())
    await reader.kill_during(HISTORY, 1)
    reader.control.add_fault(HISTORY, "ratelimited", retry_after=3, on_calls=[2])
    before = len(reader.control.calls(HISTORY))
    await reader.work()
    assert reader.stored() == sorted([*messages, *replies])
    for call in reader.control.calls(HISTORY)[before:]:
        assert not stored & set(call.served)
    # 20 pages, the one that the kill cost, the refused ones, and one sent too soon after the kill.
    assert len(reader.control.calls(HISTORY)) <= 20 + 1 + 3 + 1
    assert len(reader.control.calls(REPLIES)) == 10


async def test_a_thread_that_can_not_be_read_holds_nobody_up(reader: Reader) -> None:
    """503 with an HTML body three times for thread 7 of 20."""
    reader.channel("engineering")
    reader.channel("design")
    roots = [reader.post("engineering", f"root {n}", 9_000 - n) for n in range(20)]
    replies = [
        reader.post("engineering", "reply", 0, ts=f"{root[:-6]}000500", thread=root)
        for root in roots
    ]
    others = reader.fill("design", 20)
    reader.control.add_fault(REPLIES, "http", thread=roots[7], times=3)
    await reader.list_all()
    await reader.work(end=reader.clock.now + 2_000)
    assert reader.threads()[roots[7]] == ("failed", "HTTP 503")
    assert [state for state, _ in reader.threads().values()].count("complete") == 19
    assert reader.states() == {"engineering": "complete", "design": "complete"}
    everything = sorted([*roots, *replies, *others])
    assert [ts for ts in everything if ts not in reader.stored()] == [replies[7]]
    await reader.work()
    assert reader.stored() == everything
    assert reader.threads()[roots[7]] == ("complete", "")


async def test_a_channel_that_can_not_be_read_holds_no_other_up(reader: Reader) -> None:
    reader.channel("broken")
    reader.channel("engineering")
    wanted = reader.fill("engineering", 40)
    reader.control.add_fault(HISTORY, "error", channel="broken", times=None, error="fatal_error")
    await reader.list_all()
    await reader.work(end=reader.clock.now + 2_000)
    assert reader.states() == {"engineering": "complete", "broken": "failed"}
    assert reader.stored() == sorted(wanted)
    assert (
        reader.rows.one("SELECT last_error FROM channel_history WHERE state = 'failed'")
        == "fatal_error"
    )


async def test_no_shape_of_a_broken_answer_ends_the_reading(reader: Reader) -> None:
    reader.channel("engineering")
    wanted = reader.fill("engineering", 20)
    reader.control.add_fault(HISTORY, "malformed")
    reader.control.add_fault(HISTORY, "reset", times=2)
    reader.control.add_fault(HISTORY, "http", status=200)
    await reader.list_all()
    await reader.work()
    assert reader.stored() == sorted(wanted)


async def test_an_app_that_is_not_in_a_channel_any_more_reads_it_no_further(
    reader: Reader,
) -> None:
    reader.channel("engineering")
    reader.fill("engineering", 40)
    await reader.list_all()
    reader.control.before_call(
        HISTORY,
        "leave",
        {"channel": "engineering", "user": reader.installation.bot_user_id},
        on_call=2,
    )
    await reader.work()
    assert reader.states() == {"engineering": "left"}
    assert len(reader.control.calls(HISTORY)) == 2


async def test_a_revoked_token_stops_all_reading_and_a_new_one_takes_it_up(
    reader: Reader,
) -> None:
    reader.channel("engineering")
    wanted = reader.fill("engineering", 40)
    reader.control.add_fault(HISTORY, "error", error="token_revoked", on_calls=[2])
    await reader.list_all()
    await reader.work()
    assert reader.states() == {"engineering": "failed"}
    assert len(reader.control.calls(HISTORY)) == 2
    await reader.list_all()
    await reader.work()
    assert reader.stored() == sorted(wanted)
    assert len(reader.control.calls(HISTORY)) == 4


async def test_a_channel_that_the_app_joins_late_is_the_only_one_read(reader: Reader) -> None:
    """500 older messages in a private channel that joins the list when others are complete."""
    reader.channel("engineering")
    reader.fill("engineering", 30)
    await reader.list_all()
    await reader.work()
    before = len(reader.control.calls(HISTORY, channel="engineering"))
    private = reader.control.add_channel(
        "leads", kind="private_channel", members=["Ines", reader.installation.bot_user_id]
    ).channel_id
    wanted = reader.fill("leads", 500)
    await reader.take_up(private)
    await reader.kill_during(HISTORY, 5)
    await reader.work()
    assert reader.stored(private) == sorted(wanted)
    assert len(reader.control.calls(HISTORY, channel="engineering")) == before
    # The call that the kill lost was sent a moment late; Slack may refuse the next one once.
    assert len(reader.control.calls(HISTORY, channel="leads")) <= 34 + 1 + 1
    assert reader.rows.all("SELECT name, kind FROM channels WHERE channel_id = %s", private) == [
        ("leads", "private")
    ]


async def test_a_listing_is_resumed_where_it_was_killed(reader: Reader) -> None:
    for number in range(450):
        reader.control.add_user(f"person {number}")
    reader.channel("engineering")
    await reader.list_all()
    await reader.kill_during("users.list", 2)
    await reader.work()
    # Three pages, and the second once more.
    assert len(reader.control.calls("users.list")) == 4
    assert reader.rows.one("SELECT count(*) FROM people WHERE in_directory") >= 452
    assert reader.states() == {"engineering": "complete"}


async def test_what_a_purge_holds_back_is_not_read_again(reader: Reader) -> None:
    channel = reader.channel("engineering")
    messages = reader.fill("engineering", 20)
    await reader.list_all()
    await reader.work()
    reader.rows.execute("DELETE FROM messages")
    reader.rows.execute("DELETE FROM channels")
    reader.rows.execute(
        "INSERT INTO purge_reports (workspace_id, purge_id, scope, channel_id, hold_ts, "
        "finished_at) VALUES ('W', 'p', 'channel', %s, %s, now())",
        channel,
        messages[0],
    )
    await reader.list_all()
    await reader.work()
    assert reader.states() == {}
    new = reader.post("engineering", "after the purge", 1)
    await reader.take_up(channel)
    await reader.work()
    assert reader.stored() == [new]


async def test_an_older_page_does_not_bring_a_deleted_message_back(reader: Reader) -> None:
    channel = reader.channel("engineering")
    messages = reader.fill("engineering", 20)
    reader.rows.execute(
        "INSERT INTO tombstones (workspace_id, message_id) VALUES ('W', %s)",
        slack_message_id(reader.team_id, channel, messages[17]),
    )
    await reader.list_all()
    await reader.work()
    assert reader.stored() == sorted(set(messages) - {messages[17]})


async def test_a_channel_that_is_being_purged_is_not_read(reader: Reader) -> None:
    channel = reader.channel("engineering")
    messages = reader.fill("engineering", 40)
    await reader.list_all()
    await reader.work(end=reader.clock.now + 10)
    assert len(reader.stored()) == 15
    reader.rows.execute(
        "INSERT INTO purge_reports (workspace_id, purge_id, scope, channel_id) "
        "VALUES ('W', 'p', 'channel', %s)",
        channel,
    )
    await reader.work(end=reader.clock.now + 300)
    assert len(reader.stored()) == 15
    assert len(reader.control.calls(HISTORY)) == 1
    reader.rows.execute("UPDATE purge_reports SET finished_at = now()")
    await reader.list_all()
    await reader.work()
    assert reader.stored() == sorted(messages)


async def test_the_end_of_an_installation_ends_the_reading(reader: Reader) -> None:
    reader.channel("engineering")
    reader.fill("engineering", 40)
    await reader.list_all()
    await reader.work(end=reader.clock.now + 10)
    reader.rows.execute("DELETE FROM jobs")
    await reader.work()
    assert len(reader.control.calls(HISTORY)) == 1


async def test_what_the_app_itself_said_is_not_stored_but_the_answers_to_it_are(
    reader: Reader,
) -> None:
    reader.channel("engineering")
    bot = reader.installation.bot_user_id
    root = reader.control.post(
        "engineering", bot, "An answer.", ts=reader.ts(5_000), silent=True
    ).ts
    reply = reader.post("engineering", "Thanks, but it was Tuesday.", 4_000, thread=root)
    await reader.list_all()
    await reader.work()
    assert reader.stored() == [reply]


async def test_a_page_that_comes_when_its_purge_has_begun_is_dropped(reader: Reader) -> None:
    reader.channel("engineering")
    reader.fill("engineering", 5)
    reader.control.add_fault(HISTORY, "slow", seconds=0.5)
    await reader.list_all()
    working = asyncio.create_task(reader.work())
    await until(lambda: bool(reader.control.calls(HISTORY)))
    reader.rows.execute(
        "INSERT INTO purge_reports (workspace_id, purge_id, scope) VALUES ('W', 'p', 'workspace')"
    )
    await working
    assert reader.stored() == []
    assert len(reader.control.calls(HISTORY)) == 1
