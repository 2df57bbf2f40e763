"""What is durable once an event is acknowledged."""

from __future__ import annotations

import asyncio
import json

import pytest

from recall.ingest.v1 import slack_pb2
from tests import builders as b
from tests import slack_events as s
from tests.integration.app_fixtures import App, install
from tests.integration.ingest_fixtures import Rows, call_fails

NEW = slack_pb2.RECORDED_NEW
DUPLICATE = slack_pb2.RECORDED_DUPLICATE
IGNORED = slack_pb2.RECORDED_IGNORED

ENDS: list[b.Record] = [
    {"type": "app_uninstalled"},
    {"type": "tokens_revoked", "tokens": {"bot": [s.BOT_USER]}},
]
ROOT = b.slack_record("what was there", 0)
BURIED = [(b.message_id(0),)]


def tombstones(rows: Rows) -> list[tuple[str]]:
    return rows.all("SELECT message_id FROM tombstones ORDER BY 1")


async def test_an_event_is_one_job_however_often_and_wherever_it_is_delivered(
    app: App, rows: Rows
) -> None:
    event = s.posted("hello")
    outcomes = await asyncio.gather(*(app.tell(event, "Ev1") for _ in range(6)))
    assert sorted(outcomes) == [NEW, *[DUPLICATE] * 5]
    assert rows.all("SELECT kind, dedup_key, state FROM jobs") == [("event", "Ev1", "ready")]


async def test_a_retry_after_the_work_was_done_is_a_duplicate(app: App, rows: Rows) -> None:
    await app.tell(s.posted("hello"), "Ev1")
    await app.work()
    assert await app.tell(s.posted("hello"), "Ev1") == DUPLICATE
    assert rows.one("SELECT state FROM jobs WHERE kind = 'event'") == "done"


async def test_the_same_event_id_of_two_teams_are_two_events(app: App, rows: Rows) -> None:
    install(rows, "W2", "T0OTHER")
    assert await app.tell(s.posted("one"), "Ev1") == NEW
    assert await app.tell(s.posted("two"), "Ev1", team_id="T0OTHER") == NEW
    assert rows.all("SELECT workspace_id FROM jobs ORDER BY 1") == [("W",), ("W2",)]


async def test_a_team_without_an_installation_is_ignored(app: App, rows: Rows) -> None:
    rows.execute("INSERT INTO workspaces (workspace_id, source, team_id) VALUES ('A','slack','T9')")
    for team_id in ("T9", "T0NOBODY", ""):
        assert await app.tell(s.posted("hello"), team_id=team_id) == IGNORED
    assert rows.one("SELECT count(*) FROM jobs") == 0


async def test_an_organisation_s_installation_hears_each_of_its_teams(app: App, rows: Rows) -> None:
    install(rows, "E0ORG", "")
    rows.execute(
        "UPDATE installations SET enterprise_id = 'E0ORG', is_enterprise_install = true "
        "WHERE workspace_id = 'E0ORG'"
    )
    request = s.delivery(s.posted("hello"), team_id="T0OFORG")
    request.enterprise_id = "E0ORG"
    await app.ingest.ingest.RecordEvent(request)
    assert rows.one("SELECT workspace_id FROM jobs") == "E0ORG"


@pytest.mark.parametrize(
    "event",
    [
        pytest.param(s.deleted(0), id="message_deleted"),
        pytest.param(s.deleted(0, previous_message={"ts": "1.0"}), id="only its deleted_ts counts"),
        pytest.param(s.deleted(0, deleted_ts=None), id="only the previous message names it"),
        pytest.param(s.deleted(0, channel_type="im"), id="in a direct conversation"),
        pytest.param(s.deleted(0, channel_type=""), id="without a channel type"),
        pytest.param(s.changed(ROOT, s.tombstone(0), 900), id="a root with replies"),
        pytest.param(
            s.changed(ROOT, s.tombstone(0, subtype=None), 900), id="the phrase, said by Slackbot"
        ),
        pytest.param(
            s.changed(ROOT, s.tombstone(0, subtype=None, user="U1"), 900), id="the phrase, hidden"
        ),
        pytest.param(
            {**s.tombstone(0), "channel": b.GENERAL, "channel_type": "group"}, id="a bare tombstone"
        ),
    ],
)
async def test_a_deletion_is_buried_when_it_is_acknowledged(
    app: App, rows: Rows, event: b.Record
) -> None:
    assert await app.tell(event, "Ev1") == NEW
    assert tombstones(rows) == BURIED
    assert await app.tell(event, "Ev1") == DUPLICATE
    assert tombstones(rows) == BURIED


@pytest.mark.parametrize(
    "event",
    [
        s.posted("This message was deleted."),
        s.changed(ROOT, s.edited("This message was deleted.", 0, 60), 60),
        s.posted("hello", thread_ts=b.ts_of(0)),
    ],
    ids=["a person types the phrase", "a person edits to the phrase", "a reply"],
)
async def test_nothing_else_is_buried(app: App, rows: Rows, event: b.Record) -> None:
    assert await app.tell(event) == NEW
    assert tombstones(rows) == []


@pytest.mark.parametrize(
    "event",
    [
        {"type": "reaction_added", "user": "U1"},
        {"type": "app_mention", "user": "U1", "channel": b.GENERAL, "ts": b.ts_of(0)},
        {"type": "app_home_opened", "user": "U1", "channel": "D1"},
        {"type": "group_open", "channel": "G1"},
        {"type": "tokens_revoked", "tokens": {"oauth": ["U1"], "bot": []}},
        s.posted("to you", channel="D1", channel_type="im"),
        s.posted("to you two", channel="G1", channel_type="mpim"),
        s.posted("U1 has joined", subtype="channel_join"),
        s.posted("", subtype="message_replied"),
        s.changed(ROOT, s.edited("again", 0, 60), 60, channel="D1"),
        {"type": "message", "ts": b.ts_of(0), "text": "nowhere"},
    ],
    ids=lambda event: str(event.get("subtype") or event.get("channel_type") or event["type"]),
)
async def test_what_changes_nothing_stored_is_ignored(
    app: App, rows: Rows, event: b.Record
) -> None:
    assert await app.tell(event) == IGNORED
    assert rows.one("SELECT count(*) FROM jobs") == 0


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (b"text", "is not JSON"),
        (b"[]", "holds no event"),
        (b'{"event": {}}', "holds no event"),
        (b"[" * 100_000, "is not JSON"),
    ],
)
async def test_a_body_that_is_no_event_is_refused_and_named(
    app: App, body: bytes, problem: str
) -> None:
    request = slack_pb2.RecordEventRequest(team_id=b.TEAM, event_id="Ev1", envelope_json=body)
    with call_fails() as errors:
        await app.ingest.ingest.RecordEvent(request)
    assert errors[0].code.name == "INVALID_ARGUMENT"
    assert errors[0].message.startswith("envelope_json: ") and problem in errors[0].message


async def test_a_nul_inside_an_event_is_recorded_and_taken_out_of_the_message(
    app: App, rows: Rows
) -> None:
    assert "\\u0000" in json.dumps(s.posted("a\0b"))
    await app.happen(s.posted("a\0b"))
    assert rows.one("SELECT text FROM messages") == "ab"


@pytest.mark.parametrize("event", ENDS, ids=["app_uninstalled", "tokens_revoked"])
async def test_the_end_of_an_installation_takes_its_token_and_asks_for_a_purge_at_once(
    app: App, rows: Rows, event: b.Record
) -> None:
    await app.tell(s.posted("hello"))
    assert await app.tell(event, "EvEnd") == NEW
    assert rows.one("SELECT count(*) FROM installations") == 0
    assert rows.all("SELECT scope, finished_at FROM purge_reports") == [("workspace", None)]
    assert rows.all("SELECT kind FROM jobs ORDER BY 1") == [("event",), ("purge",)]
    assert await app.tell(event, "EvEnd") == IGNORED
    assert await app.tell(s.posted("more")) == IGNORED
    assert rows.one("SELECT count(*) FROM jobs") == 2


async def test_a_late_retry_of_the_end_does_not_purge_a_new_installation(
    app: App, rows: Rows
) -> None:
    await app.tell({"type": "app_uninstalled"}, "EvEnd")
    await app.work()
    install(rows, "W", b.TEAM)
    assert await app.tell({"type": "app_uninstalled"}, "EvEnd") == DUPLICATE
    assert rows.one("SELECT count(*) FROM installations") == 1
    assert rows.one("SELECT count(*) FROM jobs") == 0


@pytest.mark.parametrize("event", ENDS, ids=["app_uninstalled", "tokens_revoked"])
async def test_an_end_told_late_is_that_of_the_installation_before(
    app: App, rows: Rows, event: b.Record
) -> None:
    await app.tell(s.posted("hello"), "Ev1")
    rows.execute("UPDATE installations SET installed_at = to_timestamp(%s)", s.EVENT_TIME + 1.5)
    assert await app.tell(event, "EvLate", event_time=s.EVENT_TIME) == IGNORED
    assert rows.one("SELECT count(*) FROM installations") == 1
    assert rows.one("SELECT count(*) FROM purge_reports") == 0
    # One in the very second of the installation, and one that names none, are taken at their word.
    assert await app.tell(event, "EvNow", event_time=s.EVENT_TIME + 1) == NEW
    assert rows.one("SELECT count(*) FROM installations") == 0


@pytest.mark.parametrize("event_time", [None, "soon", True, 1.5, -1, 10**30])
async def test_an_end_without_a_time_purges(app: App, rows: Rows, event_time: object) -> None:
    assert await app.tell(ENDS[0], "EvEnd", event_time=event_time) == NEW
    assert rows.all("SELECT scope FROM purge_reports") == [("workspace",)]
