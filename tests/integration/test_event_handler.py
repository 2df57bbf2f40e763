"""What an event makes of the rows, in whatever order and however often it comes."""

from __future__ import annotations

import itertools
from functools import partial
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from services.ingest import queue
from services.ingest.backoff import NextRun
from services.ingest.event import handle_event
from tests import builders as b
from tests import slack_events as s
from tests.integration.app_fixtures import App, install
from tests.integration.ingest_fixtures import Rows

ROOT = b.slack_record("the window is Tuesday", 0)


def messages(rows: Rows) -> list[tuple[Any, ...]]:
    return rows.all("SELECT text, edited_ts FROM messages ORDER BY ts")


# Messages ------------------------------------------------------------------------------------


async def test_a_message_is_stored_found_and_waits_for_its_vector(app: App, rows: Rows) -> None:
    await app.happen(s.posted("deploy window"))
    assert rows.all("SELECT message_id, channel_id, ts, author_id, text FROM messages") == [
        (b.message_id(0), b.GENERAL, b.ts_of(0), "U1", "deploy window")
    ]
    assert rows.found("window") == ["message"]
    assert rows.one("SELECT count(*) FROM vectors_384 WHERE embedding IS NULL") == 1
    assert rows.all("SELECT state FROM jobs WHERE kind = 'embedding'") == [("ready",)]


async def test_a_thread_broadcast_is_one_message_of_its_thread(app: App, rows: Rows) -> None:
    root = {**b.slack_record("the root", 0), "thread_ts": b.ts_of(0)}
    broadcast = s.posted("for all", 1, subtype="thread_broadcast", thread_ts=b.ts_of(0), root=root)
    await app.happen(s.posted("the root"), broadcast)
    assert rows.all("SELECT text, thread_root_id FROM messages ORDER BY ts") == [
        ("the root", b.message_id(0)),
        ("for all", b.message_id(0)),
    ]
    assert rows.found("all") == ["message", "thread"]


async def test_a_late_reply_rebuilds_its_thread(app: App, rows: Rows) -> None:
    await app.happen(s.posted("the root"), s.posted("late", 7_200, thread_ts=b.ts_of(0)))
    assert rows.found("late") == ["message", "thread"]


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))), ids=str)
async def test_the_newest_edit_stays_in_whatever_order_the_versions_come(
    app: App, rows: Rows, order: tuple[int, ...]
) -> None:
    first, second = s.edited("the window is Wednesday", 0, 60), s.edited("Thursday", 0, 120)
    versions = [
        s.posted("the window is Tuesday"),
        s.changed(ROOT, first, 60),
        s.changed(first, second, 120),
    ]
    await app.happen(*(versions[number] for number in order))
    assert messages(rows) == [("Thursday", b.ts_of(120))]
    assert rows.found("tuesday") == rows.found("wednesday") == []


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))), ids=str)
async def test_a_deleted_message_never_comes_back(
    app: App, rows: Rows, order: tuple[int, ...]
) -> None:
    events = [
        s.posted("a password"),
        s.changed(ROOT, s.edited("a password again", 0, 9_999), 9_999),
        s.deleted(0),
    ]
    await app.happen(*(events[number] for number in order), events[0])
    assert messages(rows) == []
    assert rows.found("password") == []
    assert rows.one("SELECT count(*) FROM tombstones") == 1


async def test_a_deletion_takes_the_message_it_names_not_one_of_its_own_time(
    app: App, rows: Rows
) -> None:
    thread = {"thread_ts": b.ts_of(0)}
    await app.happen(
        s.posted("last week's secret"),
        s.posted("a reply", 1, **thread),
        s.posted("today", 900),
        s.deleted(0, at=900),
    )
    assert messages(rows) == [("a reply", ""), ("today", "")]
    assert rows.found("secret") == []
    assert rows.one("SELECT count(*) FROM chunks WHERE text ~ 'secret'") == 0
    assert rows.found("reply") == ["message"]


async def test_a_root_deleted_under_its_replies_is_gone_and_its_phrase_is_no_hit(
    app: App, rows: Rows
) -> None:
    thread = {"thread_ts": b.ts_of(0)}
    await app.happen(
        s.posted("the root"),
        s.posted("first", 1, **thread),
        s.posted("second", 2, **thread),
        s.changed(b.slack_record("the root", 0), s.tombstone(0), 900),
    )
    assert [text for text, _ in messages(rows)] == ["first", "second"]
    assert rows.found("deleted") == rows.found("root") == []
    assert rows.found("first") == ["message", "thread"]


async def test_a_link_preview_is_no_edit_and_embeds_nothing_anew(app: App, rows: Rows) -> None:
    before = b.slack_record("see <https://ex.test/a>", 0)
    preview = {"from_url": "https://ex.test/a", "title": "A page", "text": "about tides"}
    await app.happen(s.posted("see <https://ex.test/a>"))
    stored = rows.all("SELECT xmin::text, content_sha256, edited_at FROM messages")
    await app.happen(s.changed(before, {**before, "attachments": [preview]}, 1))
    assert rows.all("SELECT xmin::text, content_sha256, edited_at FROM messages") == stored
    assert rows.one("SELECT count(*) FROM chunks") == 1


async def test_a_preview_that_comes_before_its_message_brings_it(app: App, rows: Rows) -> None:
    before = b.slack_record("see <https://ex.test/a>", 0)
    preview = {"from_url": "https://ex.test/a", "title": "A page"}
    await app.happen(
        s.changed(before, {**before, "attachments": [preview]}, 1),
        s.posted("see <https://ex.test/a>"),
    )
    assert rows.one("SELECT count(*) FROM messages") == 1
    assert rows.one("SELECT edited_at FROM messages") is None


async def test_an_edit_that_brings_a_preview_too_is_an_edit(app: App, rows: Rows) -> None:
    preview = {"from_url": "https://ex.test/a", "title": "A page"}
    after = s.edited("see <https://ex.test/b>", 0, 60, attachments=[preview])
    await app.happen(s.posted("see"), s.changed(b.slack_record("see", 0), after, 60))
    assert rows.one("SELECT edited_ts FROM messages") == b.ts_of(60)


async def test_new_numbers_of_a_thread_change_nothing(app: App, rows: Rows) -> None:
    await app.happen(s.posted("the root"))
    before = b.slack_record("the root", 0)
    after = {**before, "thread_ts": b.ts_of(0), "reply_count": 1, "latest_reply": b.ts_of(1)}
    stored = rows.all("SELECT xmin::text FROM messages")
    await app.happen(s.changed(before, after, 1))
    assert rows.all("SELECT xmin::text FROM messages") == stored


async def test_a_bot_that_rewrites_its_message_without_an_edit_mark_is_followed(
    app: App, rows: Rows
) -> None:
    bot: b.Record = {"bot_id": "B1", "subtype": "bot_message", "user": None}
    before, after = b.slack_record("build runs", 0, **bot), b.slack_record("build ok", 0, **bot)
    await app.happen(s.posted("build runs", 0, **bot), s.changed(before, after, 5))
    assert [text for text, _ in messages(rows)] == ["build ok"]


async def test_an_edit_that_leaves_no_words_takes_the_message_away(app: App, rows: Rows) -> None:
    await app.happen(s.posted("regrettable"), s.changed(ROOT, s.edited("", 0, 60), 60))
    assert messages(rows) == []
    assert rows.found("regrettable") == []


async def test_what_the_app_says_itself_is_never_indexed(app: App, rows: Rows) -> None:
    await app.happen(
        s.posted("an answer", 0, user=s.BOT_USER, bot_id=s.BOT),
        s.posted("an answer by its bot alone", 1, user=None, bot_id=s.BOT),
        s.posted("a person", 2),
    )
    assert [text for text, _ in messages(rows)] == ["a person"]


async def test_bots_that_are_switched_off_are_not_indexed(app: App, rows: Rows) -> None:
    rows.execute("UPDATE workspaces SET index_bots = false")
    await app.happen(s.posted("alert", 0, bot_id="B1", subtype="bot_message", user=None))
    assert messages(rows) == []


async def test_a_direct_conversation_that_an_archive_brought_only_loses_messages(
    app: App, rows: Rows
) -> None:
    rows.execute("INSERT INTO channels VALUES ('W', 'X1', 'Ada, Grace', 'direct')")
    await app.happen(s.posted("psst", channel="X1", channel_type=""))
    assert messages(rows) == []


async def test_names_come_from_the_directory_or_the_message_itself(app: App, rows: Rows) -> None:
    rows.execute(
        "INSERT INTO people (workspace_id, person_id, display_name) VALUES ('W', 'U2', 'Grace')"
    )
    guest: b.Record = {
        "user": "U0EXT",
        "user_profile": {"display_name": "Lin"},
        "user_team": "T0OTHER",
    }
    await app.happen(s.posted("ask <@U2>", 0, **guest))
    assert rows.one("SELECT text FROM messages") == "ask @Grace"
    assert rows.all(
        "SELECT display_name, team_id, in_directory FROM people WHERE person_id = 'U0EXT'"
    ) == [("Lin", "T0OTHER", False)]
    assert "· Lin]" in rows.one("SELECT text FROM chunks")


async def test_messages_older_than_the_retention_limit_are_not_stored(app: App, rows: Rows) -> None:
    rows.execute("UPDATE workspaces SET retention_days = 30")
    await app.happen(s.posted("long ago", 0, ts="1500000000.000100"))
    assert messages(rows) == []


# Exactly once ----------------------------------------------------------------------------------


async def test_no_words_stay_in_a_job_that_ended(app: App, rows: Rows) -> None:
    await app.happen(s.posted("a secret"))
    await app.tell(s.posted("another secret", 1))
    rows.execute("UPDATE jobs SET attempts = max_attempts - 1 WHERE state = 'ready'")
    job = (await queue.claim(app.resources.queue_pool, ("event",)))[0]
    await queue.fail(app.resources.queue_pool, job, NextRun(8, None), "broken")
    ended = rows.all("SELECT state, payload::text FROM jobs WHERE kind = 'event' ORDER BY 1")
    assert [state for state, _ in ended] == ["dead", "done"]
    assert not any("secret" in payload for _, payload in ended)
    assert b.message_id(1).rsplit(":", 1)[1] in ended[0][1]


async def test_an_event_run_again_after_a_crash_changes_nothing(app: App, rows: Rows) -> None:
    await app.tell(s.posted("hello"))
    job = (await queue.claim(app.resources.queue_pool, ("event",)))[0]
    await handle_event(app.resources, job)
    before = rows.all("SELECT ctid::text, xmin::text FROM messages")
    await handle_event(app.resources, job)
    assert rows.all("SELECT ctid::text, xmin::text FROM messages") == before


async def test_whoever_lost_the_job_writes_nothing(app: App, rows: Rows) -> None:
    await app.tell(s.posted("hello"))
    job = (await queue.claim(app.resources.queue_pool, ("event",)))[0]
    rows.execute("UPDATE jobs SET claim_number = claim_number + 1 WHERE kind = 'event'")
    await handle_event(app.resources, job)
    assert messages(rows) == []


async def retried(app: App, rows: Rows, event: b.Record) -> None:
    """Deliver an event that dies with its words and is tried again."""
    await app.tell(event)
    job = (await queue.claim(app.resources.queue_pool, ("event",)))[0]
    rows.execute(
        "UPDATE jobs SET state = 'ready', leased_until = NULL, heartbeat_at = NULL, "
        "payload = payload - 'envelope' WHERE job_id = %s",
        job.job_id,
    )
    await app.work()


async def test_a_dead_message_event_tried_again_asks_slack_for_its_words(
    app: App, rows: Rows
) -> None:
    await retried(app, rows, s.posted("hello"))
    assert messages(rows) == []
    assert rows.all("SELECT dedup_key, payload FROM jobs WHERE kind = 'backfill'") == [
        (f"channel:{b.GENERAL}", {"channel_id": b.GENERAL})
    ]


async def test_a_dead_deletion_tried_again_is_finished_from_its_ids(app: App, rows: Rows) -> None:
    await app.happen(s.posted("a password"))
    await retried(app, rows, s.changed(ROOT, s.tombstone(0), 900))
    assert messages(rows) == []


# Channels --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("channel_type", "kind"), [("channel", "public"), ("group", "private"), ("", "private")]
)
async def test_an_unknown_channel_is_made_known_and_its_history_asked_for(
    app: App, rows: Rows, channel_type: str, kind: str
) -> None:
    await app.happen(s.posted("hello", channel_type=channel_type), s.posted("again", 1))
    assert rows.all("SELECT channel_id, name, kind FROM channels") == [(b.GENERAL, b.GENERAL, kind)]
    assert rows.all("SELECT dedup_key FROM jobs WHERE kind = 'backfill'") == [
        (f"channel:{b.GENERAL}",)
    ]


def described(name: str, **fields: object) -> b.Record:
    return {"id": b.GENERAL, "name": name, "is_channel": True, "created": 1, **fields}


async def test_a_rename_is_rendered_into_every_chunk(app: App, rows: Rows) -> None:
    await app.happen(s.about_channel("channel_created", described("ops")))
    await app.happen(*(s.posted(f"message {number}", number) for number in range(3)))
    assert rows.one("SELECT count(*) FROM chunks WHERE starts_with(text, '[#ops ·')") == 3
    await app.happen(s.about_channel("channel_rename", described("operations")))
    assert rows.one("SELECT count(*) FROM chunks WHERE starts_with(text, '[#operations ·')") == 3
    assert rows.found("ops") == []


async def test_names_that_arrive_in_the_wrong_order_end_with_the_newest(
    app: App, rows: Rows
) -> None:
    await app.happen(s.posted("hello"))
    await app.happen(s.about_channel("channel_rename", described("newest"), at=920))
    await app.happen(s.about_channel("channel_rename", described("older"), at=910))
    await app.happen(s.about_channel("channel_created", described("first"), at=900))
    assert rows.one("SELECT name FROM channels") == "newest"
    await app.happen(s.about_channel("channel_rename", described("last"), at=930))
    assert rows.one("SELECT name FROM channels") == "last"


async def test_an_archiving_told_late_does_not_undo_the_unarchiving(app: App, rows: Rows) -> None:
    await app.happen(s.posted("hello"), s.about_channel("channel_unarchive", user="U1", at=910))
    await app.happen(s.about_channel("channel_archive", user="U1", at=905))
    assert rows.one("SELECT is_archived FROM channels") is False


async def test_a_private_channel_s_rename_keeps_it_private(app: App, rows: Rows) -> None:
    await app.happen(s.about_channel("group_rename", described("council", is_channel=False)))
    assert rows.all("SELECT name, kind FROM channels") == [("council", "private")]


@pytest.mark.parametrize("prefix", ["channel", "group"])
async def test_archiving_marks_a_channel_and_keeps_its_messages(
    app: App, rows: Rows, prefix: str
) -> None:
    await app.happen(s.posted("hello"), s.about_channel(f"{prefix}_archive", user="U1"))
    assert rows.all("SELECT is_archived, (SELECT count(*) FROM messages) FROM channels") == [
        (True, 1)
    ]
    await app.happen(s.about_channel(f"{prefix}_unarchive", user="U1"))
    assert rows.one("SELECT is_archived FROM channels") is False


async def test_a_channel_shared_with_another_team_is_marked(app: App, rows: Rows) -> None:
    await app.happen(s.posted("hello"), s.about_channel("channel_shared"))
    assert rows.one("SELECT is_shared FROM channels") is True
    await app.happen(s.about_channel("channel_unshared", is_ext_shared=False))
    assert rows.one("SELECT is_shared FROM channels") is False


async def test_a_channel_made_private_is_private(app: App, rows: Rows) -> None:
    await app.happen(s.posted("hello"), s.posted("", 1, subtype="channel_convert_to_private"))
    assert rows.one("SELECT kind FROM channels") == "private"


async def test_a_new_channel_id_moves_everything(app: App, rows: Rows) -> None:
    thread = {"thread_ts": b.ts_of(0)}
    await app.happen(
        s.posted("the root"),
        s.posted("a reply", 1, **thread),
        s.posted("gone", 2),
        s.deleted(2),
        s.member("joined", "U2", 3),
    )
    rows.embed("g", 384)
    for table, column in (("channel_history", "latest_ts"), ("thread_history", "root_ts")):
        rows.execute(
            f"INSERT INTO {table} (workspace_id, channel_id, {column}) VALUES ('W', %s, '1.0')",
            b.GENERAL,
        )
    await app.happen(
        {"type": "channel_id_changed", "old_channel_id": b.GENERAL, "new_channel_id": "C0NEW"}
    )
    new = [b.message_id(second, "C0NEW") for second in range(3)]
    assert rows.all("SELECT message_id, channel_id, thread_root_id FROM messages ORDER BY 1") == [
        (new[0], "C0NEW", new[0]),
        (new[1], "C0NEW", new[0]),
    ]
    assert rows.all("SELECT message_id FROM tombstones") == [(new[2],)]
    assert rows.all("SELECT channel_id FROM channels") == [("C0NEW",)]
    assert rows.all("SELECT channel_id, person_id FROM channel_members") == [("C0NEW", "U2")]
    assert rows.all("SELECT DISTINCT channel_id FROM chunk_terms") == [("C0NEW",)]
    for table in ("channel_history", "thread_history"):
        assert rows.all(f"SELECT channel_id FROM {table}") == [("C0NEW",)]
    assert rows.one("SELECT count(*) FROM vectors_384 WHERE embedding IS NULL") == 0
    await app.happen(s.posted("gone", 2, channel="C0NEW"))
    assert rows.found("gone") == []
    assert rows.found("reply") == ["message", "thread"]


async def test_a_message_that_came_under_the_new_channel_id_first_is_kept_once(
    app: App, rows: Rows
) -> None:
    await app.happen(
        s.posted("the root"),
        s.changed(ROOT, s.edited("the root, newer", 0, 60), 60, channel="C0NEW"),
        {"type": "channel_id_changed", "old_channel_id": b.GENERAL, "new_channel_id": "C0NEW"},
    )
    assert rows.all("SELECT message_id, text FROM messages") == [
        (b.message_id(0, "C0NEW"), "the root, newer")
    ]


# People ----------------------------------------------------------------------------------------


async def test_a_new_name_is_shown_on_everything_a_person_wrote(app: App, rows: Rows) -> None:
    await app.happen({"type": "team_join", "user": b.slack_user("U1", "Ada")})
    await app.happen(s.posted("one"), s.posted("two", 1, thread_ts=b.ts_of(0)))
    assert rows.found("ada") == ["message", "message", "thread"]
    await app.happen({"type": "user_change", "user": b.slack_user("U1", "Augusta")})
    assert rows.found("ada") == []
    assert rows.found("augusta") == ["message", "message", "thread"]


async def test_a_guest_who_becomes_known_is_shown_by_the_directory_s_name(
    app: App, rows: Rows
) -> None:
    await app.happen(s.posted("hello", 0, user_profile={"display_name": "A. guest"}))
    await app.happen({"type": "user_change", "user": b.slack_user("U1", "Ada")})
    assert rows.found("guest") == []
    assert rows.found("ada") == ["message"]


async def test_a_bot_keeps_the_name_it_posted_under(app: App, rows: Rows) -> None:
    bot = {"subtype": "bot_message", "username": "CI", "user": "U1"}
    await app.happen(s.posted("build ok", 0, **bot))
    await app.happen({"type": "user_change", "user": b.slack_user("U1", "Jenkins", is_bot=True)})
    assert rows.found("ci") == ["message"]


async def test_a_deactivated_person_is_marked(app: App, rows: Rows) -> None:
    await app.happen({"type": "user_change", "user": b.slack_user("U1", "Ada", deleted=True)})
    assert rows.one("SELECT is_deactivated FROM people") is True


async def test_a_rename_asked_for_while_it_is_rendered_begins_anew(app: App, rows: Rows) -> None:
    await app.happen(s.about_channel("channel_created", described("ops")), s.posted("hello"))
    await app.tell(s.about_channel("channel_rename", described("first")))
    event = (await queue.claim(app.resources.queue_pool, ("event",)))[0]
    await handle_event(app.resources, event)
    await queue.complete(app.resources.queue_pool, event)
    rendering = (await queue.claim(app.resources.queue_pool, ("rendering",)))[0]
    await app.tell(s.about_channel("channel_rename", described("second")))
    event = (await queue.claim(app.resources.queue_pool, ("event",)))[0]
    await handle_event(app.resources, event)
    await queue.complete(app.resources.queue_pool, event)
    await queue.complete(app.resources.queue_pool, rendering)
    await app.work()
    assert rows.found("second") == ["message"]


# Members ---------------------------------------------------------------------------------------


async def test_members_come_and_go(app: App, rows: Rows) -> None:
    await app.happen(s.member("joined", "U1", 1), s.member("joined", "U2", 2))
    await app.happen(s.member("left", "U1", 3))
    assert rows.all("SELECT person_id FROM channel_members") == [("U2",)]


async def test_a_leave_that_comes_after_a_later_join_is_over(app: App, rows: Rows) -> None:
    await app.happen(s.member("joined", "U1", 1))
    await app.happen(s.member("joined", "U1", 9), s.member("left", "U1", 5))
    assert rows.all("SELECT person_id FROM channel_members") == [("U1",)]


async def test_the_app_s_own_joining_asks_for_the_channel_s_history(app: App, rows: Rows) -> None:
    await app.happen(s.posted("hello"))
    rows.execute("UPDATE jobs SET state = 'done', finished_at = now() WHERE kind = 'backfill'")
    await app.happen(s.member("joined", s.BOT_USER, 5))
    assert rows.all("SELECT dedup_key, state FROM jobs WHERE kind = 'backfill'") == [
        (f"channel:{b.GENERAL}", "ready")
    ]


@pytest.mark.parametrize("kind", ["channel_left", "group_left", "channel_deleted", "group_deleted"])
async def test_of_a_channel_that_is_gone_or_left_nothing_stays(
    app: App, rows: Rows, kind: str
) -> None:
    await app.happen(s.posted("a secret"), s.posted("kept", channel="C0OTHER"))
    await app.happen(s.about_channel(kind, actor_id="U1"))
    assert [text for text, _ in messages(rows)] == ["kept"]
    assert rows.all("SELECT channel_id FROM channels") == [("C0OTHER",)]
    assert rows.found("secret") == []


async def test_a_late_message_of_a_channel_that_was_left_is_not_stored(
    app: App, rows: Rows
) -> None:
    await app.happen(s.posted("early"), s.about_channel("channel_left", at=900))
    await app.happen(s.posted("delayed", 800), s.member("joined", "U2", 850))
    assert messages(rows) == []
    assert rows.one("SELECT count(*) FROM channels") == 0


async def test_a_channel_joined_anew_is_read_again_from_its_beginning(app: App, rows: Rows) -> None:
    await app.happen(s.posted("early"), s.about_channel("channel_left", at=900))
    await app.happen(s.member("joined", s.BOT_USER, 950), s.posted("delayed", 800))
    assert [text for text, _ in messages(rows)] == ["delayed"]
    assert rows.one("SELECT count(*) FROM jobs WHERE kind = 'backfill' AND state = 'ready'") == 1


async def test_a_leave_that_comes_after_the_app_joined_again_purges_nothing(
    app: App, rows: Rows
) -> None:
    await app.happen(s.member("joined", s.BOT_USER, 950), s.posted("hello", 960))
    await app.happen(s.about_channel("channel_left", at=900), s.member("left", s.BOT_USER, 899))
    assert [text for text, _ in messages(rows)] == ["hello"]


# Any order -------------------------------------------------------------------------------------

_TEAMS = (f"T0P{number}" for number in itertools.count())
_SECONDS = st.integers(0, 3)
_ACT = st.one_of(
    st.tuples(st.just("post"), _SECONDS),
    st.tuples(st.just("edit"), _SECONDS, st.integers(60, 64)),
    st.tuples(st.just("delete"), _SECONDS),
    st.tuples(st.just("preview"), _SECONDS),
)
_ACTS = st.lists(_ACT, max_size=12)


def event_of(act: tuple[Any, ...]) -> b.Record:
    kind, second = act[0], act[1]
    thread = {"thread_ts": b.ts_of(0)}
    plain = b.slack_record(f"first {second}", second, **thread)
    if kind == "post":
        return s.posted(f"first {second}", second, **thread)
    if kind == "edit":
        text = f"edit {act[2]} of {second}"
        return s.changed(plain, s.edited(text, second, act[2], **thread), act[2])
    if kind == "delete":
        return s.deleted(second)
    preview = {"from_url": "https://ex.test", "title": "page"}
    return s.changed(plain, {**plain, "attachments": [preview]}, 1)


def expected(acts: list[tuple[Any, ...]]) -> dict[int, str]:
    """Text by second: the newest edit of every message that nobody deleted."""
    texts: dict[int, tuple[int, str]] = {}
    for act in acts:
        order = act[2] if act[0] == "edit" else 0
        text = f"edit {order} of {act[1]}" if order else f"first {act[1]}"
        if act[0] != "delete" and order >= texts.get(act[1], (0, ""))[0]:
            texts[act[1]] = (order, text)
    gone = {act[1] for act in acts if act[0] == "delete"}
    return {second: text for second, (_, text) in texts.items() if second not in gone}


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(acts=_ACTS, shuffled=st.randoms(use_true_random=False))
async def test_any_order_of_events_some_twice_ends_with_the_newest_versions(
    app: App, rows: Rows, acts: list[tuple[Any, ...]], shuffled: Any
) -> None:
    team = next(_TEAMS)
    install(rows, team, team)
    deliveries = [(event_of(act), f"Ev{number}") for number, act in enumerate(acts)] * 2
    shuffled.shuffle(deliveries)
    for event, event_id in deliveries:
        await app.tell(event, event_id, team_id=team)
        if shuffled.random() < 0.5:
            await shuffled.choice((app.work, app.work_together))()
    await app.work_together()
    await app.settle()
    stored = rows.all("SELECT ts, text FROM messages WHERE workspace_id = %s ORDER BY ts", team)
    wanted = {b.ts_of(second): text for second, text in expected(acts).items()}
    # A preview may have come with its message; its words stand after the message's own.
    assert {ts: text.split("\n")[0] for ts, text in stored} == wanted
    shown = rows.all(
        "SELECT DISTINCT m.message_id FROM chunk_messages m WHERE workspace_id = %s", team
    )
    assert {row[0] for row in shown} == {
        b.message_id(second, team_id=team) for second in expected(acts)
    }
    envelopes = "SELECT count(*) FROM jobs WHERE workspace_id = %s AND payload ? 'envelope'"
    assert rows.one(envelopes, team) == 0


_MORE_ACTS = st.lists(
    st.one_of(
        _ACT,
        st.tuples(st.just("elsewhere"), _SECONDS),
        st.tuples(st.just("guest"), _SECONDS),
        st.tuples(st.just("rename"), st.integers(1, 2)),
        st.tuples(st.just("private"), st.just(0)),
        st.tuples(st.just("leave"), st.just(2)),
        st.tuples(st.just("move"), st.just(0)),
    ),
    min_size=2,
    max_size=14,
)


def more_event_of(act: tuple[Any, ...]) -> b.Record:
    kind, number = act[0], act[1]
    if kind == "elsewhere":
        return s.posted(f"elsewhere {number}", number, channel="C0ELSEWHERE")
    if kind == "guest":
        profile = {"display_name": "A guest"}
        return s.posted(f"hi <@U1> {number}", number, user="U0GUEST", user_profile=profile)
    if kind == "rename":
        named = {"id": b.GENERAL, "name": f"name-{number}", "created": 1}
        return s.about_channel("channel_rename", named, at=number)
    if kind == "private":
        return s.posted("", 900, subtype="channel_convert_to_private")
    if kind == "leave":
        return s.about_channel("channel_left", at=number)
    if kind == "move":
        ids = {"old_channel_id": "C0ELSEWHERE", "new_channel_id": "C0NEW"}
        return {"type": "channel_id_changed", "event_ts": b.ts_of(900), **ids}
    return event_of(act)


_LEFT = {
    "messages": "message_id, channel_id, author_id, edited_ts, text, thread_root_id",
    "chunks": "kind, channel_id, thread_root_id, text",
    "chunk_messages": "message_id, position",
    "chunk_terms": "channel_id, author_ids, terms",
    "vectors_384": "channel_id, author_ids, posted_from, posted_until",
    "channels": "channel_id, name, kind",
    "people": "person_id, display_name",
    "tombstones": "message_id",
    "purge_reports": "channel_id, hold_ts, deleted",
    "jobs": "kind, state, payload",
}


def left_behind(rows: Rows, team: str) -> dict[str, list[str]]:
    """What is stored for a workspace, without its own id."""
    return {
        table: sorted(
            str(row).replace(team, "")
            for row in rows.all(f"SELECT {columns} FROM {table} WHERE workspace_id = %s", team)
        )
        for table, columns in _LEFT.items()
    }


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(acts=_MORE_ACTS)
async def test_events_handled_together_leave_what_they_leave_one_after_the_other(
    app: App, rows: Rows, acts: list[tuple[Any, ...]]
) -> None:
    left = []
    for work in (partial(app.work, "event"), app.work_together):
        team = next(_TEAMS)
        install(rows, team, team)
        for number, act in enumerate(acts):
            await app.tell(more_event_of(act), f"Ev{number}", team_id=team)
        await work()
        await app.work()
        left.append(left_behind(rows, team))
    assert left[0] == left[1]
