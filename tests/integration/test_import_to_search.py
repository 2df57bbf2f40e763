"""What an import stores is what a search finds: the real ingest, lane and retrieve on one database.

Texts here are those that break tokenizers, indexes and models.
"""

from __future__ import annotations

import asyncio
import base64
import random

import pytest

from recall.corpus.v1 import corpus_pb2
from recall.retrieve.v1 import retrieve_pb2
from services.embedding.registry import Embedders
from services.ingest.embedding import fill_vectors
from services.retrieve.stored_messages import CUT_NOTE, MAX_TEXT_CHARACTERS
from services.runtime import db
from tests import builders as b
from tests.conftest import Serve
from tests.integration.ingest_fixtures import Ingest, Rows
from tests.integration.retrieve_stage import retrieve_stage

LIMIT_TOKENS = 600
# 1.2 million different short words: their text vector would be far over PostgreSQL's megabyte.
HUGE = "zebra " + " ".join(f"{number:x}" for number in range(1_200_000))
WITHOUT_SPACES = {
    "letters": "a" * 100_000,
    "carets": "^" * 1_000_000,
    "underscores": "_" * 50_000,
    "base64": base64.b64encode(random.Random(1).randbytes(150_000)).decode(),
}


def searched(
    question: str, source: corpus_pb2.Source.ValueType, channel_id: str
) -> retrieve_pb2.SearchRequest:
    context = corpus_pb2.QueryContext(source=source, workspace_id="W", channel_ids=[channel_id])
    return retrieve_pb2.SearchRequest(context=context, question=question)


def best_by_words(found: retrieve_pb2.SearchResponse) -> corpus_pb2.Message:
    """The message that the lexical arm lists first."""
    ranks = {hit.lexical_rank: hit.message for hit in found.hits if hit.HasField("lexical_rank")}
    return ranks[0]


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("see <https://ex.test/failover-runbook|here>", "where is the failover runbook?"),
        ("see <https://ex.test/failover-runbook|here>", "https://ex.test/failover-runbook"),
        ("see <https://ex.test/failover-runbook|here>", "ex.test"),
        ("mind services/billing/main.py", "billing"),
        ("mind services/billing/main.py", "main.py"),
        ("mind services/billing/main.py", "services/billing/main.py"),
        ("config.yaml is wrong", "which config"),
        ("config.yaml is wrong", "config.yaml"),
        ("it came from postmaster@ex.test", "postmaster"),
        ("fails since 3.2 with 28P01", "since 3.2"),
        ("fails since 3.2 with 28P01", "28p01"),
    ],
)
async def test_links_paths_and_files_are_found_whole_and_by_their_words(
    ingest: Ingest, serve: Serve, database_url: str, text: str, question: str
) -> None:
    noise = [b.slack_record(f"lunch number {number} is soup", number) for number in range(1, 6)]
    await ingest.load(b.slack_import(b.slack_record(text, 0), *noise, embedder="local"))
    async with retrieve_stage(database_url, serve) as stub:
        found = await stub.Search(searched(question, corpus_pb2.SOURCE_SLACK, b.GENERAL))
    assert best_by_words(found).message_id == b.message_id(0)


async def test_a_huge_line_is_stored_whole_and_found_by_both_arms(
    ingest: Ingest,
    rows: Rows,
    serve: Serve,
    database_url: str,
    ingest_pool: db.Pool,
    embedders: Embedders,
) -> None:
    report = await ingest.load(
        [
            b.lines_header(embedder="local"),
            b.records(
                b.json_line("before", "an ordinary line"),
                b.json_line("huge", HUGE, 1),
                b.json_line("after", "another ordinary line", 2),
                folder="",
            ),
        ]
    )
    assert report.counts.imported == 3
    assert rows.one("SELECT max(length(text)) FROM messages") == len(HUGE)
    assert await fill_vectors(ingest_pool, embedders, "W", report.generation_id) == 3
    async with retrieve_stage(database_url, serve) as stub:
        found = await stub.Search(searched("the zebra", corpus_pb2.SOURCE_SYNTHETIC, "ops"))
    assert found.hits[0].message.message_id == "synthetic:ops:huge"
    assert found.hits[0].lexical_rank == 0
    assert all(hit.HasField("dense_rank") for hit in found.hits)
    assert len(found.hits) == 3
    assert found.hits[0].message.text == HUGE[:MAX_TEXT_CHARACTERS] + CUT_NOTE


async def test_a_huge_slack_message_is_split_and_found_by_its_first_and_last_word(
    ingest: Ingest, rows: Rows, serve: Serve, database_url: str
) -> None:
    text = f"{HUGE[:2_000_000]} walrus"
    report = await ingest.load(
        b.slack_import(
            b.slack_record("before"),
            b.slack_record(text, 1),
            b.slack_record("after", 2),
            embedder="local",
        )
    )
    assert report.counts.imported == 3
    assert rows.one("SELECT max(token_count) FROM chunks") <= LIMIT_TOKENS
    assert rows.one("SELECT count(*) FROM chunks") > 1_000
    async with retrieve_stage(database_url, serve) as stub:
        for question in ("zebra", "walrus"):
            found = await stub.Search(searched(question, corpus_pb2.SOURCE_SLACK, b.GENERAL))
            assert [hit.message.message_id for hit in found.hits] == [b.message_id(1)]


async def test_runs_without_spaces_cost_nobody_anything(
    ingest: Ingest,
    rows: Rows,
    serve: Serve,
    database_url: str,
    ingest_pool: db.Pool,
    embedders: Embedders,
) -> None:
    runs = [
        b.slack_record(f"{name} {text}", number)
        for number, (name, text) in enumerate(WITHOUT_SPACES.items())
    ]
    report = await ingest.load(
        b.slack_import(*runs, b.slack_record("an ordinary neighbour", 10), embedder="local")
    )
    assert report.counts.imported == len(runs) + 1
    stored = rows.all("SELECT text FROM messages ORDER BY posted_at")
    assert [text for (text,) in stored[:-1]] == [run["text"] for run in runs]
    assert rows.one("SELECT max(token_count) FROM chunks") <= LIMIT_TOKENS
    first_pieces = "DELETE FROM vectors_384 v USING chunks c WHERE v.chunk_id = c.chunk_id AND "
    # A few pieces of each are enough for the model.
    rows.execute(first_pieces + "c.kind LIKE 'message/%%' AND length(c.kind) > 9")
    await fill_vectors(ingest_pool, embedders, "W", report.generation_id)
    assert rows.one("SELECT count(*) FROM vectors_384 WHERE embedding IS NULL") == 0
    async with retrieve_stage(database_url, serve) as stub:
        for name in (*WITHOUT_SPACES, "neighbour"):
            found = await stub.Search(searched(name, corpus_pb2.SOURCE_SLACK, b.GENERAL))
            assert name in best_by_words(found).text.split()


async def test_a_newer_overlapping_export_after_a_broken_off_one_embeds_only_what_changed(
    ingest: Ingest, rows: Rows, ingest_pool: db.Pool, embedders: Embedders
) -> None:
    entries = [
        b.slack_record(f"message {n}", n, thread_ts=b.ts_of(n - n % 4)) for n in range(1_000)
    ]

    async def broken_off() -> object:
        for request in b.slack_import(*entries, embedder="local"):
            yield request
        await asyncio.sleep(3600)

    call = ingest.ingest.ImportMessages(broken_off())  # type: ignore[arg-type]
    await call.read()
    call.cancel()
    report = await ingest.load(b.slack_import(*entries, embedder="local"))
    assert report.counts.imported + report.counts.unchanged == 1_000
    rows.embed(report.generation_id, 384)
    vectors = "SELECT v.chunk_id, v.xmin::text FROM vectors_384 v ORDER BY 1"
    before = dict(rows.all(vectors))

    edited = {"user": "U1", "ts": b.ts_of(9_000)}
    changed = b.slack_record("message 501, put right", 501, thread_ts=b.ts_of(500), edited=edited)
    newer = [*entries[400:501], changed, *entries[502:], b.slack_record("message 1000", 1_000)]
    report = await ingest.load(b.slack_import(*newer))
    assert (report.counts.imported, report.counts.updated) == (1, 1)
    assert rows.one("SELECT count(DISTINCT (channel_id, ts)) FROM messages") == 1_001
    assert rows.one("SELECT count(*) FROM messages") == 1_001
    waiting = rows.all(
        "SELECT c.text FROM chunks c JOIN vectors_384 v USING (chunk_id) WHERE embedding IS NULL"
    )
    assert len(waiting) == 3
    assert all("501, put right" in text or "message 1000" in text for (text,) in waiting)
    after = dict(rows.all(vectors))
    assert sum(before.get(chunk_id) != xmin for chunk_id, xmin in after.items()) == 3
