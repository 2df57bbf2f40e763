"""Edits and deletions reach every derived row in the transaction that stores them."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from services.corpus import Source
from services.ingest.delete_messages import delete_messages
from services.ingest.import_batch import open_scope
from services.ingest.resources import Resources
from services.ingest.workspaces import Workspace, changing
from tests import builders as b
from tests.integration.ingest_fixtures import Ingest, Rows

WORKSPACE = Workspace("W", Source.SLACK, b.TEAM, index_bots=True)


def edited(text: str, second: int, edited_second: int, **fields: object) -> b.Record:
    return b.slack_record(
        text, second, edited={"user": "U1", "ts": b.ts_of(edited_second)}, **fields
    )


def tombstone(second: int) -> b.Record:
    return {"type": "message", "subtype": "tombstone", "ts": b.ts_of(second), "hidden": True}


async def test_an_edit_leaves_no_trace_of_the_old_text(ingest: Ingest, rows: Rows) -> None:
    root = b.slack_record("the root", 0, thread_ts=b.ts_of(0))
    reply = b.slack_record("the window is Tuesday", 1, thread_ts=b.ts_of(0))
    await ingest.load(b.slack_import(root, reply, embedder="local"))
    rows.embed("g-1", 384)
    report = await ingest.load(
        b.slack_import(edited("the window is Thursday", 1, 60, thread_ts=b.ts_of(0)))
    )
    assert (report.counts.updated, report.counts.imported) == (1, 0)
    assert rows.found("tuesday") == []
    assert rows.found("thursday") == ["message", "thread"]
    assert rows.one("SELECT count(*) FROM messages WHERE text ~ 'Tuesday'") == 0
    assert rows.one("SELECT count(*) FROM chunks WHERE text ~ 'Tuesday'") == 0
    waiting = rows.all(
        "SELECT c.kind FROM vectors_384 v JOIN chunks c USING (chunk_id) "
        "WHERE embedding IS NULL ORDER BY 1"
    )
    assert waiting == [("message",), ("thread",)]
    unused = (
        "SELECT count(*) FROM embedding_cache e WHERE NOT EXISTS "
        "(SELECT FROM chunks c WHERE c.text_sha256 = e.text_sha256)"
    )
    assert rows.one(unused) == 0
    assert rows.all("SELECT state FROM jobs WHERE kind = 'embedding'") == [("ready",)]


async def test_a_reply_edit_rebuilds_only_its_thread(ingest: Ingest, rows: Rows) -> None:
    thread = [b.slack_record(f"t {n}", n, thread_ts=b.ts_of(0)) for n in range(3)]
    other = [b.slack_record(f"o {n}", 10 + n, thread_ts=b.ts_of(10)) for n in range(3)]
    await ingest.load(b.slack_import(*thread, *other))

    def versions(table: str) -> set[tuple[Any, ...]]:
        return set(
            rows.all(
                f"SELECT c.text, x.ctid::text, x.xmin::text FROM {table} x "
                "JOIN chunks c USING (workspace_id, generation_id, chunk_id)"
            )
        )

    tables = ("chunks", "chunk_terms", "vectors_1536", "chunk_messages")
    before = {table: versions(table) for table in tables}
    await ingest.load(b.slack_import(edited("t 2 again", 2, 60, thread_ts=b.ts_of(0))))
    for table in tables:
        changed = {row[0] for row in versions(table) ^ before[table]}
        assert changed and all("t 2" in text for text in changed)


async def test_an_older_version_changes_nothing(ingest: Ingest, rows: Rows) -> None:
    await ingest.load(b.slack_import(edited("newest", 0, 120)))
    before = rows.snapshot()
    report = await ingest.load(b.slack_import(edited("older", 0, 60), b.slack_record("oldest", 0)))
    assert report.counts.unchanged == 2
    assert rows.snapshot() == before


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("1772442060.000009", "1772442060.000010"),
        ("999999999.900000", "1772442060.100000"),
        ("1772442060.999999", "1772442061.000000"),
    ],
)
async def test_edits_are_ordered_as_whole_numbers(
    ingest: Ingest, rows: Rows, earlier: str, later: str
) -> None:
    first = b.slack_record("later", 0, edited={"user": "U1", "ts": later})
    second = b.slack_record("earlier", 0, edited={"user": "U1", "ts": earlier})
    await ingest.load(b.slack_import(first, second))
    assert rows.all("SELECT text, edited_ts FROM messages") == [("later", later)]


async def test_a_message_whose_words_were_all_taken_away_goes(ingest: Ingest, rows: Rows) -> None:
    await ingest.load(b.slack_import(b.slack_record("regrettable", 0), b.slack_record("kept", 1)))
    await ingest.load(b.slack_import(edited("", 0, 60)))
    assert rows.found("regrettable") == []
    assert rows.all("SELECT text FROM messages") == [("kept",)]
    assert rows.one("SELECT count(*) FROM tombstones") == 0


async def test_an_older_empty_version_does_not_take_a_message_away(
    ingest: Ingest, rows: Rows
) -> None:
    await ingest.load(b.slack_import(edited("now with words", 0, 60)))
    await ingest.load(b.slack_import(b.slack_record("", 0)))
    assert rows.all("SELECT text FROM messages") == [("now with words",)]


async def test_a_deletion_removes_everything_and_holds_against_older_archives(
    ingest: Ingest, rows: Rows
) -> None:
    root = b.slack_record("the root", 0, thread_ts=b.ts_of(0))
    reply = b.slack_record("a password", 1, thread_ts=b.ts_of(0))
    await ingest.load(b.slack_import(root, reply, embedder="local"))
    rows.embed("g-1", 384)
    report = await ingest.load(b.slack_import(root, tombstone(1)))
    assert report.counts.deleted == 1
    older = await ingest.load(b.slack_import(root, edited("a password", 1, 9_999)))
    assert dict(older.counts.skipped) == {"deleted_before": 1}
    assert rows.found("password") == []
    assert rows.all("SELECT text FROM messages") == [("the root",)]
    assert rows.all("SELECT kind FROM chunks") == [("message",)]
    assert rows.one("SELECT count(*) FROM embedding_cache") == 1
    before = rows.snapshot()
    again = await ingest.load(b.slack_import(root, tombstone(1)))
    assert (again.counts.deleted, dict(again.counts.skipped)) == (0, {"deleted_before": 1})
    assert rows.snapshot() == before


async def test_a_deletion_wins_over_a_copy_in_the_same_batch(ingest: Ingest, rows: Rows) -> None:
    report = await ingest.load(
        b.slack_import(tombstone(0), b.slack_record("gone", 0), b.slack_record("kept", 1))
    )
    assert rows.all("SELECT text FROM messages") == [("kept",)]
    assert (report.counts.deleted, dict(report.counts.skipped)) == (1, {"deleted_before": 1})


async def test_replies_to_a_deleted_root_stay_a_thread(ingest: Ingest, rows: Rows) -> None:
    thread = [b.slack_record(f"reply {n}", n, thread_ts=b.ts_of(0)) for n in range(3)]
    await ingest.load(b.slack_import(*thread))
    await ingest.load(b.slack_import(tombstone(0)))
    thread_text = rows.one("SELECT text FROM chunks WHERE kind = 'thread'")
    assert ("reply 0" in thread_text, "reply 1" in thread_text) == (False, True)
    assert rows.all("SELECT DISTINCT thread_root_id FROM messages") == [(b.message_id(0),)]


async def test_deletion_reaches_every_generation_whatever_its_state(
    ingest: Ingest, rows: Rows, resources: Resources
) -> None:
    await ingest.load(b.slack_import(b.slack_record("secret"), embedder="local"))
    for number, state in enumerate(("ready", "retired"), 1):
        rows.execute(
            "INSERT INTO generations (workspace_id, generation_id, source, state, "
            "chunker_version, embedder_fingerprint, width) SELECT workspace_id, %s, source, %s, "
            "chunker_version, embedder_fingerprint, width FROM generations LIMIT 1",
            f"old-{number}",
            state,
        )
        rows.execute(
            "INSERT INTO chunks SELECT workspace_id, %s, chunk_id, channel_id, thread_root_id, "
            "kind, text, text_sha256, token_count FROM chunks WHERE generation_id = 'g-1'",
            f"old-{number}",
        )
        rows.execute(
            "INSERT INTO chunk_messages SELECT workspace_id, %s, chunk_id, message_id, position "
            "FROM chunk_messages WHERE generation_id = 'g-1'",
            f"old-{number}",
        )
    async with changing(resources.pool, "W") as connection:
        scope = await open_scope(connection, WORKSPACE, resources)
        assert await delete_messages(scope, [b.message_id(0)]) == 1
    assert rows.one("SELECT count(*) FROM chunks") == 0
    assert rows.one("SELECT count(*) FROM messages") == 0


_WORKSPACES = (f"P{number}" for number in itertools.count())
_SECONDS = st.integers(0, 8)
_ROW = st.tuples(
    st.sampled_from(["C1", "C2"]),
    _SECONDS,
    st.one_of(st.none(), st.integers(60, 63)),
    st.one_of(st.none(), _SECONDS),
)


def _records(
    rows: list[tuple[str, int, int | None, int | None]], name: str
) -> list[tuple[str, b.Record]]:
    """Messages whose text says which version they are: one text an edit and archive."""
    made: list[tuple[str, b.Record]] = []
    for channel_id, second, edit, thread in rows:
        fields: dict[str, object] = {} if thread is None else {"thread_ts": b.ts_of(thread)}
        if edit is not None:
            fields["edited"] = {"user": "U1", "ts": b.ts_of(edit)}
        made.append((channel_id, b.slack_record(f"{name} {second} {edit}", second, **fields)))
    return made


def _requests(workspace_id: str, made: list[tuple[str, b.Record]]) -> list[b.Request]:
    listed = b.channels(b.slack_channel("C1", "C1"), b.slack_channel("C2", "C2"))
    parts = [b.records(record, folder=channel_id) for channel_id, record in made]
    return [b.header(workspace_id, team_id="T1"), listed, *parts]


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(first=st.lists(_ROW, max_size=20), second=st.lists(_ROW, max_size=20), kept=_SECONDS)
async def test_rows_are_the_distinct_messages_with_their_newest_edit(
    ingest: Ingest,
    rows: Rows,
    first: list[tuple[str, int, int | None, int | None]],
    second: list[tuple[str, int, int | None, int | None]],
    kept: int,
) -> None:
    workspace_id = next(_WORKSPACES)
    older, newer = _records(first, "A"), _records(second, "B")
    # Killed half way is the same to the database as an archive that ends there.
    for part in (older[:kept], older, newer, newer):
        await ingest.load(_requests(workspace_id, part))
    newest: dict[tuple[str, object], tuple[int, object]] = {}
    for archive in (older, newer):
        for channel_id, record in archive:
            edit = record.get("edited")
            order = int(str(edit["ts"])[:10]) if isinstance(edit, dict) else 0
            key = (channel_id, record["ts"])
            if key not in newest or order >= newest[key][0]:
                newest[key] = (order, record["text"])
    stored = rows.all(
        "SELECT channel_id, ts, text FROM messages WHERE workspace_id = %s", workspace_id
    )
    assert sorted(stored) == sorted((*key, text) for key, (_, text) in newest.items())
    shown = rows.all(
        "SELECT message_id, count(*) FROM chunk_messages cm JOIN chunks c "
        "USING (workspace_id, generation_id, chunk_id) "
        "WHERE cm.workspace_id = %s AND kind = 'message' GROUP BY 1",
        workspace_id,
    )
    assert [count for _, count in shown] == [1] * len(newest)
