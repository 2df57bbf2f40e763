"""A purge leaves nothing of what it names, and everything else untouched."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from recall.ingest.v1 import ingest_pb2, slack_pb2
from services.ingest import queue
from services.ingest.event import handle_event
from services.ingest.labels import Label, canonical, digest
from services.ingest.purge import handle_purge
from services.ingest.upkeep import Upkeep
from tests import builders as b
from tests import slack_events as s
from tests.integration.app_fixtures import App, install, limit_callers
from tests.integration.ingest_fixtures import Rows, call_fails
from tests.waiting import until

WORKSPACES = {"W": b.TEAM, "W2": "T0SECOND", "W3": "T0THIRD"}


def dump(rows: Rows) -> dict[str, list[str]]:
    """Every row of every table as text."""
    tables = rows.all("SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1")
    return {
        table: [row[0] for row in rows.all(f'SELECT x::text FROM "{table}" AS x ORDER BY 1')]
        for (table,) in tables
    }


def of(workspace_id: str, tables: dict[str, list[str]]) -> dict[str, list[str]]:
    """The rows of one workspace, whose id begins each of them."""
    found = {
        table: [row for row in lines if row.startswith(f"({workspace_id},")]
        for table, lines in tables.items()
    }
    return {table: lines for table, lines in found.items() if lines}


async def fill(app: App, rows: Rows, workspace_id: str, word: str) -> None:
    """Something in every table that a workspace can have rows in."""
    team = WORKSPACES[workspace_id]
    if workspace_id != "W":
        install(rows, workspace_id, team)
    user = b.slack_user("U1", f"Ada {word}")
    joined: b.Record = {"type": "team_join", "user": user}
    for event in (
        joined,
        s.about_channel("channel_created", {"id": b.GENERAL, "name": f"ops-{word}"}),
        s.member("joined", "U1", 1),
        s.posted(f"the {word} window"),
        s.posted(f"a {word} reply", 1, thread_ts=b.ts_of(0)),
        s.posted(f"elsewhere {word}", 2, channel="C0OTHER"),
        s.posted("gone", 3),
        s.deleted(3),
    ):
        await app.tell(event, team_id=team)
    await app.work()
    rows.execute(
        "UPDATE vectors_384 SET embedding = array_fill(0.5::real, ARRAY[384])::vector "
        "WHERE workspace_id = %s",
        workspace_id,
    )
    rows.execute(
        "INSERT INTO embedding_cache "
        "SELECT DISTINCT workspace_id, 'f', text_sha256, '\\x00'::bytea FROM chunks "
        "WHERE workspace_id = %s",
        workspace_id,
    )
    await app.tell(s.posted(f"waiting {word}", 4), team_id=team)
    ids = [b.message_id(second, team_id=team) for second in (0, 1)]
    others = b.message_id(2, "C0OTHER", team)
    rows.execute("INSERT INTO pacing VALUES (%s, 'conversations.history')", workspace_id)
    for channel_id in (b.GENERAL, "C0OTHER"):
        rows.execute(
            "INSERT INTO channel_history (workspace_id, channel_id) VALUES (%s, %s) "
            "ON CONFLICT DO NOTHING",
            workspace_id,
            channel_id,
        )
        rows.execute(
            "INSERT INTO thread_history (workspace_id, channel_id, root_ts) VALUES (%s, %s, '1.0')",
            workspace_id,
            channel_id,
        )
    rows.execute("INSERT INTO corrections VALUES (%s, %s, %s, 'U1')", workspace_id, *ids)
    for number, cited in enumerate((ids[0], others)):
        rows.execute(
            "INSERT INTO deliveries (workspace_id, delivery_id, job_id, claim_number, state, "
            "channel_id, evidence, finished_at) "
            "VALUES (%s, %s, %s, 1, 'delivered', 'D1', %s, now())",
            workspace_id,
            f"d{number}",
            f"j{number}",
            json.dumps([{"message_id": cited}]),
        )
        rows.execute(
            "INSERT INTO feedback VALUES (%s, %s, 'U1', true, %s, %s)",
            workspace_id,
            f"d{number}",
            f"what about {word}?",
            [cited],
        )

    for channel_id in (b.GENERAL, "C0OTHER"):
        fill_collection(rows, workspace_id, channel_id, word)
    rows.execute(
        "INSERT INTO audit_events (workspace_id, kind) VALUES (%s, 'generation_promoted')",
        workspace_id,
    )


def fill_collection(rows: Rows, workspace_id: str, channel_id: str, word: str) -> None:
    """A sealed generation of documents, calibrated, with a card and decisions on it."""
    given = {"w": workspace_id, "c": channel_id, "g": f"d-{channel_id}", "word": word}
    for statement in (
        "INSERT INTO generations (workspace_id, generation_id, source, collection, kind, state, "
        "chunker_version, embedder_fingerprint, width) "
        "VALUES (%(w)s, %(g)s, 'document', %(c)s, 'sealed', 'building', '1', 'f', 384)",
        "INSERT INTO sources (workspace_id, generation_id, source_uri, channel_id, path, "
        "version_id, media_type, size, sha256, first_indexed_at) "
        "VALUES (%(w)s, %(g)s, 'file:///' || %(word)s, %(c)s, %(word)s, '1', 't', 1, 's', now())",
        "INSERT INTO source_pieces (workspace_id, generation_id, message_id, source_uri, ordinal, "
        "channel_id, text, content_sha256) VALUES (%(w)s, %(g)s, 'document:' || %(c)s || ':a#0', "
        "'file:///' || %(word)s, 0, %(c)s, %(word)s, 's')",
        "INSERT INTO supersessions (workspace_id, generation_id, source_uri, superseded_uri, "
        "asserted_at) VALUES (%(w)s, %(g)s, 'file:///' || %(word)s, 'old', now())",
        "INSERT INTO document_relations (workspace_id, generation_id, source_uri, relation, "
        "target_uri) VALUES (%(w)s, %(g)s, 'file:///' || %(word)s, 'supports', 'other')",
        "INSERT INTO chunks (workspace_id, generation_id, chunk_id, channel_id, thread_root_id, "
        "kind, text, text_sha256, token_count) "
        "VALUES (%(w)s, %(g)s, 'c', %(c)s, 'm', 'message', %(word)s, 's', 1)",
        "INSERT INTO source_tombstones (workspace_id, channel_id, source_uri) "
        "VALUES (%(w)s, %(c)s, 'gone')",
        "INSERT INTO label_sets (workspace_id, labels_sha256, labels) VALUES (%(w)s, %(g)s, "
        "jsonb_build_array(jsonb_build_object('question', %(word)s::text)))",
        "INSERT INTO calibrations (workspace_id, calibration_id, generation_id, rule, state, "
        "model, model_sha256, labels_sha256, pipeline_fingerprint, false_confirm_target, "
        "false_abstain_target) "
        "VALUES (%(w)s, %(g)s, %(g)s, 'logistic', 'published', '{}', '', %(g)s, '', 0.1, 0.1)",
        "INSERT INTO calibration_replays VALUES (%(w)s, %(g)s, now(), 'calibrate', 30, 30, 0, 0, "
        "0.1, 0.1, 1)",
        "INSERT INTO evidence_cards (workspace_id, card_id, generation_id, channel_id, source_uri, "
        "source_sha256, pipeline_fingerprint, facts, card_sha256) "
        "VALUES (%(w)s, 'k' || %(c)s, %(g)s, %(c)s, %(word)s, 's', '', '[]', 's')",
        "UPDATE generations SET state = 'active', promoted_at = now() WHERE generation_id = %(g)s "
        "AND workspace_id = %(w)s",
    ):
        rows.connection.execute(statement.encode(), given)
    for kind, channels, cards, asserted in (
        ("asserted", [channel_id], [], ""),
        ("rejected", [], [f"k{channel_id}"], ""),
        ("superseded", [], [], f"asserted-{channel_id}"),
    ):
        rows.execute(
            "INSERT INTO fact_events (workspace_id, event_id, request_id, kind, decision, "
            "namespace, subject, predicate, object, card_ids, channel_ids, asserted_event_id, "
            "actor) VALUES (%s, %s, %s, %s, 'd', 'n', %s, 'p', 'o', %s, %s, %s, 'operator')",
            *(workspace_id, f"{kind}-{channel_id}", f"{kind}-{channel_id}", kind),
            *(word, cards, channels, asserted),
        )


def label(question: str, *relevant_ids: str) -> Label:
    return Label(question, answerable=bool(relevant_ids), relevant_ids=relevant_ids)


def calibrate_chat(rows: Rows, labels: Sequence[Label]) -> None:
    """A published calibration of W's chat, and its labels."""
    text = canonical(labels)
    rows.execute("INSERT INTO label_sets VALUES ('W', %s, %s)", digest(text), text)
    rows.execute(
        "INSERT INTO calibrations (workspace_id, calibration_id, generation_id, rule, state, "
        "model, model_sha256, labels_sha256, pipeline_fingerprint, false_confirm_target, "
        "false_abstain_target, replay_at) VALUES ('W', 'chat', 'g', 'logistic', 'published', "
        "'{}', '', %s, '', 0.1, 0.1, now() + interval '1 day')",
        digest(text),
    )


async def fill_all(app: App, rows: Rows) -> None:
    for workspace_id, word in zip(WORKSPACES, ("herring", "salmon", "turbot"), strict=True):
        await fill(app, rows, workspace_id, word)


async def report(app: App, workspace_id: str, purge_id: str) -> ingest_pb2.GetPurgeResponse:
    return await app.ingest.ingest.GetPurge(
        ingest_pb2.GetPurgeRequest(workspace_id=workspace_id, purge_id=purge_id)
    )


async def test_a_workspace_s_purge_leaves_its_report_and_nothing_else(app: App, rows: Rows) -> None:
    await fill_all(app, rows)
    before = dump(rows)
    begun = of("W", before)
    assert "herring" in str(begun)
    response = await app.ingest.ingest.PurgeWorkspace(
        ingest_pb2.PurgeWorkspaceRequest(workspace_id="W")
    )
    assert not (await report(app, "W", response.purge_id)).is_finished
    await app.work("purge")
    after = dump(rows)
    assert list(of("W", after)) == ["purge_reports"]
    assert "herring" not in str(after).lower()
    assert f"slack:{b.TEAM}:" not in str(after)
    for other in ("W2", "W3"):
        assert of(other, after) == of(other, before)
    finished = await report(app, "W", response.purge_id)
    assert (finished.is_finished, finished.scope) == (True, "workspace")
    counted = {table: len(lines) for table, lines in begun.items()}
    del counted["installations"], counted["workspaces"]
    assert dict(finished.deleted) == {**counted, "workspace": 1}


async def test_a_killed_purge_goes_on_where_it_was(app: App, rows: Rows) -> None:
    await app.happen(s.posted("herring"))
    rows.execute(
        "INSERT INTO messages (workspace_id, message_id, channel_id, posted_at, thread_root_id, "
        "text, content_sha256) SELECT 'W', n::text, %s, now(), n::text, 'herring', '' "
        "FROM generate_series(1, 2500) AS n",
        b.GENERAL,
    )
    await app.tell({"type": "app_uninstalled"}, "EvEnd")
    job = (await queue.claim(app.resources.queue_pool, ("purge",)))[0]
    running = asyncio.create_task(handle_purge(app.resources, job))
    await until(lambda: rows.one("SELECT count(*) FROM messages") < 2_501)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    rows.execute("UPDATE jobs SET heartbeat_at = now() - interval '1 minute'")
    await app.work("purge")
    assert list(of("W", dump(rows))) == ["purge_reports"]
    assert (await report(app, "W", "event-EvEnd")).deleted["messages"] == 2_501


async def test_whoever_runs_an_event_of_what_is_purged_writes_nothing(app: App, rows: Rows) -> None:
    await app.happen(s.member("joined", "U1", 1))
    await app.tell(s.posted("herring", 2))
    running = (await queue.claim(app.resources.queue_pool, ("event",)))[0]
    await app.ingest.ingest.PurgeChannel(
        ingest_pb2.PurgeChannelRequest(workspace_id="W", channel_id=b.GENERAL)
    )
    await app.work("purge")
    await handle_event(app.resources, running)
    assert not await queue.heartbeat(app.resources.queue_pool, running)
    assert "herring" not in str(dump(rows))


async def test_a_channel_s_purge_leaves_the_other_channels(app: App, rows: Rows) -> None:
    await fill(app, rows, "W", "herring")
    response = await app.ingest.ingest.PurgeChannel(
        ingest_pb2.PurgeChannelRequest(workspace_id="W", channel_id=b.GENERAL)
    )
    await app.work()
    after = dump(rows)
    assert [row for row in after["messages"] if b.GENERAL in row] == []
    everything = {table: lines for table, lines in after.items() if table != "purge_reports"}
    mentioning = {table for table, lines in everything.items() if b.GENERAL in str(lines)}
    assert mentioning == {"tombstones", "source_tombstones"}
    for table in ("sources", "source_pieces", "supersessions", "document_relations"):
        assert {row.split(",")[1] for row in after[table]} == {"d-C0OTHER"}, table
    for table in ("label_sets", "calibrations", "calibration_replays", "evidence_cards"):
        assert len(after[table]) == 1 and "C0OTHER" in after[table][0], table
    assert {row.split(",")[1].split("-")[1] for row in after["fact_events"]} == {"C0OTHER"}
    assert len(after["fact_events"]) == 3
    assert rows.all("SELECT text FROM messages") == [("elsewhere herring",)]
    assert rows.all("SELECT delivery_id FROM deliveries") == [("d1",)]
    assert rows.all("SELECT delivery_id FROM feedback") == [("d1",)]
    assert rows.one("SELECT count(*) FROM corrections") == 0
    unused = (
        "SELECT count(*) FROM embedding_cache e WHERE NOT EXISTS "
        "(SELECT FROM chunks c WHERE c.text_sha256 = e.text_sha256)"
    )
    assert rows.one(unused) == 0
    finished = await report(app, "W", response.purge_id)
    assert (finished.scope, finished.is_finished) == (f"channel {b.GENERAL}", True)
    assert finished.deleted["messages"] == 2
    assert finished.deleted["channels"] == 1


async def test_labels_of_a_purged_channel_go_and_the_rest_is_replayed_at_once(
    app: App, rows: Rows
) -> None:
    await app.happen(s.posted("herring"), s.posted("elsewhere", 2, channel="C0OTHER"))
    here, elsewhere = b.message_id(0), b.message_id(2, "C0OTHER")
    kept = [label("where is elsewhere?", elsewhere), label("is there a moon?")]
    calibrate_chat(rows, [label("what about herring?", here), *kept])
    await app.ingest.ingest.PurgeChannel(
        ingest_pb2.PurgeChannelRequest(workspace_id="W", channel_id=b.GENERAL)
    )
    await app.work("purge")
    rest = canonical(kept)
    assert rows.all("SELECT labels_sha256, labels FROM label_sets") == [
        (digest(rest), json.loads(rest))
    ]
    standing = "SELECT state, labels_sha256, replay_at <= now(), replay_cause FROM calibrations"
    assert rows.all(standing) == [("published", digest(rest), True, "erasure")]


async def test_a_channel_purged_while_the_app_stays_goes_on_from_there(
    app: App, rows: Rows
) -> None:
    await app.happen(s.posted("old", 5))
    await app.ingest.ingest.PurgeChannel(
        ingest_pb2.PurgeChannelRequest(workspace_id="W", channel_id=b.GENERAL)
    )
    await app.work()
    rows.execute("DELETE FROM jobs WHERE kind = 'backfill'")
    await app.happen(s.posted("older", 4), s.posted("new", 6))
    assert rows.all("SELECT text FROM messages") == [("new",)]
    assert rows.one("SELECT count(*) FROM jobs WHERE kind = 'backfill'") == 0


async def test_a_purge_takes_what_came_until_it_was_last_asked_for(app: App, rows: Rows) -> None:
    await fill(app, rows, "W", "harbour")
    request = ingest_pb2.PurgeChannelRequest(workspace_id="W", channel_id=b.GENERAL)
    await app.ingest.ingest.PurgeChannel(request)
    await app.tell(s.posted("between the two requests", 20))
    await app.ingest.ingest.PurgeChannel(request)
    await app.tell(s.posted("after both of them", 21))
    await app.work()
    await app.work()
    texts = rows.all("SELECT text FROM messages WHERE channel_id = %s", b.GENERAL)
    assert texts == [("after both of them",)]


async def test_a_purge_asked_for_again_is_the_one_that_is_under_way(app: App, rows: Rows) -> None:
    request = ingest_pb2.PurgeWorkspaceRequest(workspace_id="W")
    first = await app.ingest.ingest.PurgeWorkspace(request)
    assert (await app.ingest.ingest.PurgeWorkspace(request)).purge_id == first.purge_id
    assert rows.one("SELECT count(*) FROM jobs WHERE kind = 'purge'") == 1
    await app.work()
    with call_fails() as errors:
        await app.ingest.ingest.PurgeWorkspace(request)
    assert errors[0].reason_name == "WORKSPACE_NOT_FOUND"


@pytest.mark.parametrize("name", ["GetPurge", "PurgeChannel"])
async def test_what_is_not_there_is_not_found(app: App, name: str) -> None:
    requests: dict[str, Any] = {
        "GetPurge": ingest_pb2.GetPurgeRequest(workspace_id="W", purge_id="p"),
        "PurgeChannel": ingest_pb2.PurgeChannelRequest(workspace_id="W", channel_id="C9"),
    }
    with call_fails() as errors:
        await getattr(app.ingest.ingest, name)(requests[name])
    assert errors[0].code.name == "NOT_FOUND"


async def test_only_a_caller_of_every_channel_may_purge(app: App, tmp_path: Path) -> None:
    limit_callers(tmp_path / "home", b.GENERAL)
    for call, request in (
        ("PurgeWorkspace", ingest_pb2.PurgeWorkspaceRequest(workspace_id="W")),
        ("PurgeChannel", ingest_pb2.PurgeChannelRequest(workspace_id="W", channel_id=b.GENERAL)),
        ("RecordEvent", s.delivery({"type": "app_uninstalled"})),
    ):
        with call_fails() as errors:
            await getattr(app.ingest.ingest, call)(request)
        assert errors[0].reason_name == "CALLER_NOT_ALLOWED"


# What is kept no longer ------------------------------------------------------------------------


async def test_messages_past_the_limit_go_when_it_is_set(
    app: App, rows: Rows, upkeep: Upkeep
) -> None:
    await app.happen(s.posted("the root"), s.posted("a reply", 1, thread_ts=b.ts_of(0)))
    rows.execute("UPDATE messages SET posted_at = now() - interval '31 days' WHERE text ~ 'root'")
    rows.execute("UPDATE messages SET posted_at = now() - interval '29 days' WHERE text ~ 'reply'")
    settings = slack_pb2.Settings(retention_days=30)
    await app.ingest.settings.UpdateSettings(
        slack_pb2.UpdateSettingsRequest(workspace_id="W", settings=settings)
    )
    await upkeep.finished()
    assert rows.all("SELECT text FROM messages") == [("a reply",)]
    assert (rows.found("root"), rows.found("reply")) == ([], ["message"])
    assert rows.one("SELECT count(*) FROM tombstones") == 0


async def test_every_workspace_is_looked_through_every_day(
    app: App, rows: Rows, upkeep: Upkeep
) -> None:
    install(rows, "W2", "T0SECOND")
    await app.tell(s.posted("kept"))
    await app.tell(s.posted("expired"), team_id="T0SECOND")
    await app.work()
    rows.execute("UPDATE messages SET posted_at = now() - interval '31 days'")
    rows.execute("UPDATE workspaces SET retention_days = 30 WHERE workspace_id = 'W2'")
    upkeep.keep_daily()
    await until(lambda: rows.all("SELECT text FROM messages") == [("kept",)])


async def test_bots_that_are_switched_off_go(app: App, rows: Rows, upkeep: Upkeep) -> None:
    bot = {"bot_id": "B1", "subtype": "bot_message", "user": None}
    await app.happen(s.posted("alert", 0, **bot), s.posted("a person", 1))
    await app.ingest.settings.UpdateSettings(
        slack_pb2.UpdateSettingsRequest(
            workspace_id="W", settings=slack_pb2.Settings(index_bots=False)
        )
    )
    await upkeep.finished()
    assert rows.all("SELECT text FROM messages") == [("a person",)]


async def test_a_setting_stays_unless_it_is_given_and_zero_is_the_default(app: App) -> None:
    async def update(**given: Any) -> slack_pb2.Settings:
        request = slack_pb2.UpdateSettingsRequest(
            workspace_id="W", settings=slack_pb2.Settings(**given)
        )
        return (await app.ingest.settings.UpdateSettings(request)).settings

    await update(retention_days=30, history_page_size=200)
    changed = await update(history_interval_seconds=1.5, history_page_size=0)
    assert changed == slack_pb2.Settings(
        index_bots=True, retention_days=30, history_interval_seconds=1.5
    )
    request = slack_pb2.GetSettingsRequest(workspace_id="W")
    assert (await app.ingest.settings.GetSettings(request)).settings == changed


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"retention_days": -1}, "settings.retention_days"),
        ({"history_interval_seconds": 0.001}, "settings.history_interval_seconds"),
        ({"history_interval_seconds": float("nan")}, "settings.history_interval_seconds"),
        ({"history_page_size": 1_000}, "settings.history_page_size"),
        ({"false_confirm_target": 0.51}, "settings.false_confirm_target"),
        ({"false_abstain_target": -0.1}, "settings.false_abstain_target"),
        ({"trust_mode": 7}, "settings.trust_mode"),
    ],
)
async def test_a_setting_out_of_range_is_refused_and_named(
    app: App, given: dict[str, Any], field: str
) -> None:
    settings = slack_pb2.Settings(**given)
    with call_fails() as errors:
        await app.ingest.settings.UpdateSettings(
            slack_pb2.UpdateSettingsRequest(workspace_id="W", settings=settings)
        )
    assert errors[0].message.startswith(f"{field}: ")
