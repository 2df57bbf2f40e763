"""ImportMessages over real gRPC into a real PostgreSQL: odd records, odd archives, report."""

from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path

import grpc
import pytest

from recall.corpus.v1 import corpus_pb2
from recall.error.v1 import error_pb2
from recall.ingest.v1 import ingest_pb2
from services.cli.archive import read_archive
from tests import builders as b
from tests.integration.ingest_fixtures import Ingest, Rows, call_fails, data_folder

ARCHIVES = (
    "houstondatavis-export/houstondatavis.zip",
    "langchain-slack-export/slack_export.zip",
    "slack-export-viewer-testarchive/testarchive.zip",
    "zulip-slack-fixtures/test_slack_importer.zip",
    "zulip-slack-fixtures/test_unicode_slack_importer.zip",
    "zulip-slack-fixtures",
    "locomo-dev/messages.jsonl",
)
BEACON = Path(__file__).parents[2] / "evals" / "beacon"


def archive(path: Path, workspace_id: str = "W", **fields: object) -> list[b.Request]:
    """The requests of an archive."""
    header = ingest_pb2.ImportHeader(workspace_id=workspace_id, embedder="local", **fields)  # type: ignore[arg-type]
    return list(read_archive(path, header))


def assert_every_record_is_accounted_for(counts: ingest_pb2.ImportCounts) -> None:
    told = counts.imported + counts.unchanged + counts.updated + counts.deleted
    assert counts.received == told + sum(counts.skipped.values())


@pytest.mark.parametrize("name", ARCHIVES)
async def test_an_archive_imports_whole_and_a_second_time_writes_nothing(
    ingest: Ingest, rows: Rows, name: str
) -> None:
    first = await ingest.load(archive(data_folder() / name))
    assert_every_record_is_accounted_for(first.counts)
    assert rows.one("SELECT count(*) FROM messages") == first.counts.imported
    without_chunk = (
        "SELECT count(*) FROM messages m WHERE NOT EXISTS (SELECT FROM chunk_messages c "
        "WHERE c.message_id = m.message_id)"
    )
    assert rows.one(without_chunk) == 0
    before = rows.snapshot()
    second = await ingest.load(archive(data_folder() / name))
    assert rows.snapshot() == before
    assert second.counts.unchanged == first.counts.imported
    assert (second.counts.imported, second.counts.updated, second.counts.chunks_written) == (
        0,
        0,
        0,
    )


async def test_the_real_export_keeps_all_but_the_notices(ingest: Ingest, rows: Rows) -> None:
    report = await ingest.load(archive(data_folder() / ARCHIVES[0]))
    assert report.counts.received == 1382
    assert dict(report.counts.skipped) == {"notice": 351}
    assert report.counts.imported == 1031
    assert report.generation_created
    assert report.empty_channels == ["meetup"]
    assert rows.one("SELECT count(*) FROM channels") == 16
    stubs = "SELECT count(*) FROM messages WHERE text ~ 'xox[a-z]-'"
    assert rows.one(stubs) == 0


async def test_a_folder_name_without_the_utf8_flag_finds_its_channel(
    ingest: Ingest, rows: Rows
) -> None:
    report = await ingest.load(
        archive(data_folder() / "zulip-slack-fixtures/test_unicode_slack_importer.zip")
    )
    channels = rows.all(
        "SELECT DISTINCT c.name FROM messages JOIN channels c USING (workspace_id, channel_id)"
    )
    assert ("チャネル",) in channels
    assert not [note for note in report.notes if "No directory file lists" in note]


async def test_beacon_keeps_its_private_channels_private(ingest: Ingest, rows: Rows) -> None:
    report = await ingest.load(archive(BEACON, "beacon"))
    lines = (BEACON / "messages.jsonl").read_text("utf-8").splitlines()
    assert report.counts.imported == len(lines)
    private = rows.all("SELECT channel_id FROM channels WHERE kind = 'private' ORDER BY 1")
    assert private == [("hiring",), ("leads",)]
    bots = rows.all("SELECT DISTINCT author_id FROM messages WHERE is_bot ORDER BY 1")
    assert bots == [("Shipwright",), ("Watchman",)]
    members = rows.all(
        "SELECT person_id FROM channel_members WHERE channel_id = 'leads' ORDER BY 1"
    )
    assert members == [("Desmond",), ("Maren",), ("Odile",)]


async def test_a_ts_keeps_its_six_decimals_from_file_to_key(
    ingest: Ingest, rows: Rows, tmp_path: Path
) -> None:
    day = (
        b'[{"type":"message","user":"U1","ts":1439022979.000389,"text":"a number"},'
        b'{"type":"message","user":"U1","ts":"1439022979.000390","text":"a text"},'
        b'{"type":"message","user":"U1","ts":"1439022979.0003901","text":"a seventh decimal"}]'
    )
    files = {**b.export_files(), "general/2015-08-08.json": day}
    report = await ingest.load(archive(b.write_zip(tmp_path / "export.zip", files)))
    stored = rows.all("SELECT message_id, ts FROM messages ORDER BY ts")
    assert stored == [
        ("slack:T0TEAM:C0GENERAL:1439022979.000389", "1439022979.000389"),
        ("slack:T0TEAM:C0GENERAL:1439022979.000390", "1439022979.000390"),
    ]
    assert dict(report.counts.skipped) == {"bad_timestamp": 1}


async def test_equal_ts_in_two_channels_are_two_messages(ingest: Ingest, rows: Rows) -> None:
    await ingest.load(
        [
            b.header(),
            b.channels(b.slack_channel("C1", "one"), b.slack_channel("C2", "two")),
            b.records(b.slack_record("first"), folder="one"),
            b.records(b.slack_record("second"), folder="two"),
        ]
    )
    assert rows.one("SELECT count(*) FROM messages") == 2


async def test_authors_that_no_directory_lists_do_not_stop_an_import(
    ingest: Ingest, rows: Rows
) -> None:
    guest = b.slack_record(
        "from afar", 2, user="U0EXT", user_team="T0OTHER", user_profile={"display_name": "Edna"}
    )
    report = await ingest.load(
        [
            b.header(),
            b.users(b.slack_user("U1", "Ada")),
            b.channels(b.slack_channel(b.GENERAL, "general", members=["U1", "U0GONE"])),
            b.mpims({"id": "G1", "name": "mpdm-ada--gone-1", "members": ["U1", "U0GONE"]}),
            b.records(
                b.slack_record("who left", 0, user="U0GONE"),
                b.slack_record("a reminder", 1, user="USLACKBOT"),
                guest,
            ),
        ]
    )
    assert report.counts.imported == 3
    assert report.unknown_authors == ["U0GONE"]
    texts = [row[0] for row in rows.all("SELECT text FROM chunks ORDER BY text")]
    assert [text.split("· ")[2].split("]")[0] for text in texts] == ["Edna", "Slackbot", "U0GONE"]
    edna = "SELECT display_name, team_id, in_directory FROM people WHERE person_id = 'U0EXT'"
    assert rows.all(edna) == [("Edna", "T0OTHER", False)]


async def test_rows_without_a_user_keep_their_author_and_words(ingest: Ingest, rows: Rows) -> None:
    bot: b.Record = {"type": "message", "subtype": "bot_message", "username": "CI", "text": "green",
           "ts": b.ts_of(0)}  # fmt: skip
    comment: b.Record = {"type": "message", "subtype": "file_comment", "ts": b.ts_of(1), "text": "",
               "comment": {"user": "U1", "comment": "looks fine"}}  # fmt: skip
    await ingest.load(b.slack_import(bot, comment))
    stored = rows.all("SELECT text FROM chunks ORDER BY text")
    assert stored == [
        ("[#general · 2026-03-02 09:00 · Ada] looks fine",),
        ("[#general · 2026-03-02 09:00 · CI] green",),
    ]


async def test_a_bot_keeps_the_name_each_message_was_posted_under(
    ingest: Ingest, rows: Rows
) -> None:
    posts = [
        b.slack_record(f"by {name}", second, user=None, subtype="bot_message", bot_id="B1",
                       username=name)
        for second, name in enumerate(("Deploys", "Alerts"))
    ]  # fmt: skip
    await ingest.load(b.slack_import(*posts))
    texts = [row[0] for row in rows.all("SELECT text FROM chunks ORDER BY text")]
    assert [text.split("· ")[2] for text in texts] == ["Alerts] by Alerts", "Deploys] by Deploys"]


async def test_a_broadcast_reply_is_one_message_of_its_thread(ingest: Ingest, rows: Rows) -> None:
    root = b.slack_record("who broke it", 1, thread_ts=b.ts_of(1))
    broadcast = b.slack_record(
        "fixed", 3, subtype="thread_broadcast", thread_ts=b.ts_of(1), root=root
    )
    from_replies = b.slack_record("fixed", 3, thread_ts=b.ts_of(1))
    report = await ingest.load(b.slack_import(root, broadcast, root, from_replies))
    stored = rows.all("SELECT message_id, thread_root_id FROM messages ORDER BY 1")
    assert stored == [
        (b.message_id(1), b.message_id(1)),
        (b.message_id(3), b.message_id(1)),
    ]
    assert (report.counts.imported, report.counts.unchanged) == (2, 2)


async def test_a_copy_of_a_reply_without_its_thread_stays_in_the_thread(
    ingest: Ingest, rows: Rows
) -> None:
    root, reply = b.slack_record("q", 1), b.slack_record("a", 2, thread_ts=b.ts_of(1))
    await ingest.load(b.slack_import(root, reply))
    report = await ingest.load(b.slack_import(b.slack_record("a", 2)))
    assert report.counts.unchanged == 1
    assert rows.one("SELECT count(*) FROM chunks WHERE kind = 'thread'") == 1


async def test_one_huge_message_is_stored_searchable_and_fails_nobody(
    ingest: Ingest, rows: Rows
) -> None:
    words = " ".join(f"{number:x}" for number in range(1_200_000))
    report = await ingest.load(
        [
            b.lines_header(),
            b.records(
                b.json_line("before", "an ordinary line"),
                b.json_line("huge", f"zebra {words}", 1),
                b.json_line("after", "another ordinary line", 2),
                folder="",
            ),
        ]
    )
    assert report.counts.imported == 3
    assert rows.found("zebra") == ["message"]
    assert rows.found("ordinary") == ["message", "message"]
    assert rows.one("SELECT max(length(text)) FROM messages") == len(words) + len("zebra ")
    assert rows.one("SELECT count(*) FROM vectors_1536") == 3


async def test_a_nul_costs_one_character_and_is_noted_once(ingest: Ingest, rows: Rows) -> None:
    batch = [b.slack_record(f"text {number}", number) for number in range(50)]
    batch[17]["text"] = "a\0b"
    batch[20]["metadata"] = {"event_payload": {"key": "c\0d"}}
    report = await ingest.load(b.slack_import(*batch))
    assert report.counts.imported == 50
    assert rows.one("SELECT text FROM messages WHERE message_id = %s", b.message_id(17)) == "ab"
    assert [note for note in report.notes if "NUL" in note] == [
        "NUL characters were removed from 2 records."
    ]


async def test_records_that_are_no_messages_are_counted_by_reason(ingest: Ingest) -> None:
    report = await ingest.load(
        b.slack_import(
            b"not json",
            b"[]",
            {"type": "message", "text": "no ts", "user": "U1"},
            b.slack_record("", 1),
            b.slack_record("has joined", 2, subtype="channel_join"),
            b.slack_record("kept", 3),
        )
    )
    assert dict(report.counts.skipped) == {
        "not_json": 1, "not_a_message": 1, "no_timestamp": 1, "no_text": 1, "notice": 1,
    }  # fmt: skip
    assert report.counts.imported == 1
    assert_every_record_is_accounted_for(report.counts)


async def test_a_folder_that_nothing_lists_is_private_and_said_so(
    ingest: Ingest, rows: Rows
) -> None:
    report = await ingest.load(b.slack_import(b.slack_record("secret?"), folder="old-plans"))
    kinds = rows.all("SELECT channel_id, kind FROM channels ORDER BY 1")
    assert kinds == [(b.GENERAL, "public"), ("old-plans", "private")]
    assert any("old-plans" in note and "--reader-channels" in note for note in report.notes)


@pytest.mark.parametrize("folder", ["ops", "ops-2024", "C0OPS", "ops\u0301"])
async def test_a_channel_is_one_under_every_name_its_folder_had(
    ingest: Ingest, rows: Rows, folder: str
) -> None:
    listed = b.slack_channel("C0OPS", "ops", previous_names=["ops-2024", "op\u015b"])
    await ingest.load(
        [b.header(), b.channels(listed), b.records(b.slack_record("hello"), folder=folder)]
    )
    assert rows.all("SELECT DISTINCT channel_id FROM messages") == [("C0OPS",)]


async def test_a_renamed_channel_keeps_its_id_and_its_chunks_follow(
    ingest: Ingest, rows: Rows
) -> None:
    for name in ("ops", "operations"):
        await ingest.load(
            [
                b.header(),
                b.channels(b.slack_channel("C0OPS", name)),
                b.records(b.slack_record("hello"), folder=name),
            ]
        )
    assert rows.all("SELECT channel_id, name FROM channels") == [("C0OPS", "operations")]
    assert rows.one("SELECT text FROM chunks").startswith("[#operations ·")


async def test_a_renamed_person_has_the_new_name_everywhere(ingest: Ingest, rows: Rows) -> None:
    for name in ("Ada", "Ada Lovelace"):
        await ingest.load(
            [
                b.header(),
                b.users(b.slack_user("U1", name)),
                b.channels(b.slack_channel(b.GENERAL, "general")),
                b.records(b.slack_record("I am <@U1>")),
            ]
        )
    assert rows.one("SELECT text FROM chunks") == (
        "[#general · 2026-03-02 09:00 · Ada Lovelace] I am @Ada Lovelace"
    )


async def test_bots_can_be_switched_off_and_on_again(ingest: Ingest, rows: Rows) -> None:
    entries = (
        b.slack_record("the root", 0),
        b.slack_record("beep", 1, user=None, bot_id="B1", username="CI", thread_ts=b.ts_of(0)),
    )
    first = await ingest.load(b.slack_import(*entries))
    off = await ingest.load(b.slack_import(*entries, skip_bots=True))
    assert (first.counts.imported, dict(off.counts.skipped)) == (2, {"bot_switched_off": 1})
    assert rows.found("beep") == []
    assert rows.all("SELECT message_id FROM messages") == [(b.message_id(0),)]
    still_off = await ingest.load(b.slack_import(*entries))
    assert still_off.counts.imported == 0
    on = await ingest.load(b.slack_import(*entries, skip_bots=False))
    assert on.counts.imported == 1
    assert rows.found("beep") == ["message", "thread"]


async def test_lines_without_a_directory_are_public_and_beside_one_private(
    ingest: Ingest, rows: Rows
) -> None:
    line = b.json_line("1", "hello", channel="unlisted")
    await ingest.load([b.lines_header("A"), b.records(line, folder="")])
    listed = b.channels({"name": "ops", "private": False})
    await ingest.load([b.lines_header("B"), listed, b.records(line, folder="")])
    kinds = rows.all("SELECT workspace_id, kind FROM channels WHERE name = 'unlisted' ORDER BY 1")
    assert kinds == [("A", "public"), ("B", "private")]


async def test_a_faulty_line_is_named_with_its_file_and_remedy(ingest: Ingest) -> None:
    report = await ingest.load(
        [b.lines_header(), b.records({"channel": "ops"}, folder="", file="chat.jsonl")]
    )
    assert dict(report.counts.skipped) == {"missing_field": 1}
    assert any("chat.jsonl" in note and "posted_at" in note for note in report.notes)


async def test_a_file_that_the_reader_left_out_is_in_the_report(ingest: Ingest) -> None:
    left_out = b.Request(
        skipped_file=ingest_pb2.SkippedFile(file_name="a/b.json", reason="its JSON is broken")
    )
    report = await ingest.load([*b.slack_import(b.slack_record("kept")), left_out])
    assert "a/b.json was left out: its JSON is broken" in report.notes


async def test_progress_comes_before_the_report_and_counts_up(ingest: Ingest) -> None:
    entries = [b.slack_record(f"message {number}", number) for number in range(1_200)]
    events = await ingest.events(b.slack_import(*entries))
    assert [event.progress.received for event in events[:-1]] == [500, 1000, 1200]
    assert events[-1].report.counts.received == 1200


async def test_an_import_that_was_killed_half_way_is_completed_by_the_next(
    ingest: Ingest, rows: Rows
) -> None:
    entries = [b.slack_record(f"message {number}", number) for number in range(1_000)]
    requests = b.slack_import(*entries)

    async def stalls_after_the_messages() -> object:
        for request in requests:
            yield request
        await asyncio.sleep(3600)

    call = ingest.ingest.ImportMessages(stalls_after_the_messages())  # type: ignore[arg-type]
    await call.read()
    call.cancel()
    partial = rows.one("SELECT count(*) FROM messages")
    assert 0 < partial <= 1_000
    report = await ingest.load(requests)
    assert report.counts.imported + report.counts.unchanged == 1_000
    assert report.generation_created
    assert rows.one("SELECT count(*) FROM messages") == 1_000
    assert rows.one("SELECT count(*) FROM chunks") == 1_000
    assert rows.all("SELECT state FROM generations") == [("active",)]


async def test_two_imports_at_once_end_as_one(ingest: Ingest, rows: Rows) -> None:
    entries = [b.slack_record(f"m {n}", n, thread_ts=b.ts_of(n % 7)) for n in range(1_100)]
    reports = await asyncio.gather(
        ingest.load(b.slack_import(*entries)), ingest.load(b.slack_import(*reversed(entries)))
    )
    assert sum(report.counts.imported for report in reports) == 1_100
    assert sum(report.counts.unchanged for report in reports) == 1_100
    assert rows.all("SELECT state FROM generations") == [("active",)]
    alone = rows.all("SELECT chunk_id, text FROM chunks WHERE workspace_id = 'W' ORDER BY 1")
    await ingest.load(b.slack_import(*entries, workspace_id="other"))
    other = rows.all("SELECT chunk_id, text FROM chunks WHERE workspace_id = 'other' ORDER BY 1")
    assert alone == other


async def test_the_workspace_is_found_by_the_archives_team(ingest: Ingest) -> None:
    first = await ingest.load(b.slack_import(b.slack_record("a"), workspace_id="acme"))
    again = await ingest.load(
        b.slack_import(b.slack_record("b", 1), workspace_id="", default_workspace_id="file")
    )
    other = await ingest.load([b.header(""), b.users(b.slack_user("U1", "Ada", team_id="T0NEW"))])
    assert [first.workspace_id, again.workspace_id, other.workspace_id] == ["acme", "acme", "T0NEW"]


async def test_an_archive_without_a_team_gets_a_stable_one_and_says_so(
    ingest: Ingest, rows: Rows
) -> None:
    requests = [
        b.header("", default_workspace_id="attic"),
        b.channels(b.slack_channel(b.GENERAL, "general")),
        b.records(b.slack_record("hello")),
    ]
    report = await ingest.load(requests)
    again = await ingest.load(requests)
    assert (report.workspace_id, again.counts.unchanged) == ("attic", 1)
    team = rows.one("SELECT team_id FROM workspaces")
    assert team.startswith("X")
    assert any(team in note and "--team" in note for note in report.notes)


async def test_records_tell_the_team_where_users_do_not(ingest: Ingest, rows: Rows) -> None:
    await ingest.load([b.header(), b.records(b.slack_record("hello", team="T0REC"))])
    assert rows.one("SELECT team_id FROM workspaces") == "T0REC"


@pytest.mark.parametrize(
    "second",
    [
        [b.header(), b.users(b.slack_user("U1", "Ada", team_id="T0OTHER"))],
        [b.header(team_id="T0OTHER")],
        [b.lines_header()],
    ],
)
async def test_another_team_or_source_is_refused_and_writes_nothing(
    ingest: Ingest, rows: Rows, second: list[b.Request]
) -> None:
    await ingest.load(b.slack_import(b.slack_record("hello")))
    before = rows.snapshot()
    with call_fails() as errors:
        await ingest.load(second)
    assert errors[0].code == grpc.StatusCode.FAILED_PRECONDITION
    assert errors[0].reason == error_pb2.ERROR_REASON_WORKSPACE_CONFLICT
    assert "--workspace" in errors[0].message
    assert rows.snapshot() == before


@pytest.mark.parametrize(
    ("requests", "field"),
    [
        ([], "header"),
        ([b.users()], "header"),
        ([b.header(), b.header()], "header"),
        ([*b.slack_import(b.slack_record("a")), b.users()], "directory"),
        ([b.header(source=corpus_pb2.SOURCE_DOCUMENT)], "header.source"),
        ([b.lines_header("")], "workspace_id"),
        ([b.header("new\nline")], "workspace_id"),
        ([b.header(embedder="magic")], "embedder"),
        ([b.Request()], "part"),
    ],
)
async def test_a_malformed_import_names_the_field(
    ingest: Ingest, requests: list[b.Request], field: str
) -> None:
    with call_fails() as errors:
        await ingest.load(requests)
    assert errors[0].code == grpc.StatusCode.INVALID_ARGUMENT
    assert errors[0].metadata["field"] == field


async def test_a_message_of_every_kind_of_conversation_keeps_its_kind(
    ingest: Ingest, rows: Rows
) -> None:
    await ingest.load(
        [
            b.header(),
            b.users(b.slack_user("U1", "Ada"), b.slack_user("U2", "Grace")),
            b.channels(b.slack_channel("C1", "open")),
            b.groups(b.slack_channel("G1", "closed")),
            b.dms({"id": "D1", "members": ["U1", "U2"]}),
            b.mpims({"id": "G2", "name": "mpdm-ada--grace-1", "members": ["U1", "U2"]}),
            b.records(b.slack_record("to you"), folder="D1"),
        ]
    )
    kinds = rows.all("SELECT channel_id, kind, name FROM channels ORDER BY 1")
    assert kinds == [
        ("C1", "public", "open"),
        ("D1", "direct", "Ada, Grace"),
        ("G1", "private", "closed"),
        ("G2", "group_direct", "mpdm-ada--grace-1"),
    ]
    assert rows.all("SELECT channel_id FROM messages") == [("D1",)]


LONG = "".join(hashlib.sha256(bytes([n])).hexdigest() for n in range(100))


async def test_ids_of_any_length_in_an_export_lose_no_message(ingest: Ingest, rows: Rows) -> None:
    requests = [
        b.header(),
        b.users(b.slack_user("U1", "Ada"), b.slack_user(LONG, "Grace")),
        b.channels(b.slack_channel("C1", "open", members=[LONG]), b.slack_channel(LONG, "long")),
        b.records(b.slack_record("by a long id", user=LONG), folder="open"),
        b.records(
            b.slack_record("by a long name", 1, user="", subtype="bot_message", username=LONG),
            folder="open",
        ),
        b.records(b.slack_record("in a long channel", 2), folder="long"),
        b.records(b.slack_record("in a long folder", 3, team=LONG), folder=LONG[::-1]),
    ]
    report = await ingest.load(requests)
    assert (report.counts.imported, report.counts.received) == (4, 4)
    by_long_id = "SELECT p.display_name FROM messages JOIN people p ON person_id = author_id"
    assert rows.all(f"{by_long_id} WHERE text = 'by a long id'") == [("Grace",)]
    before = rows.snapshot()
    await ingest.load(requests)
    assert rows.snapshot() == before


async def test_json_lines_with_ids_of_any_length_and_kind_are_kept_and_stay(
    ingest: Ingest, rows: Rows
) -> None:
    requests = [
        b.lines_header(),
        b.records(
            b.json_line(LONG, "long id"),
            b.json_line("p2", "long root", 1, root=LONG),
            b.json_line("p3", "long channel", 2, channel=LONG),
            b.json_line("p4", "long author", 3, author=LONG),
            b.json_line("p5", "control characters", 4, author="Ada\x1fGrace\n", id="5\x1f"),
        ),
    ]
    report = await ingest.load(requests)
    assert (report.counts.imported, report.counts.received) == (5, 5)
    assert rows.one("SELECT name FROM channels WHERE channel_id <> 'ops'") == LONG
    threads = "SELECT count(DISTINCT thread_root_id) FROM messages WHERE text IN (%s, %s)"
    assert rows.one(threads, "long id", "long root") == 1
    before = rows.snapshot()
    report = await ingest.load(requests)
    assert (report.counts.unchanged, report.counts.chunks_written) == (5, 0)
    assert rows.snapshot() == before
