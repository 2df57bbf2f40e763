"""A generation's life: created by an import, built behind the serving one, promoted, retired."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

import grpc

from recall.error.v1 import error_pb2
from recall.ingest.v1 import generations_pb2
from services.corpus import Message, Source
from services.ingest.build_generation import build_generation
from services.ingest.chunkers import CHUNKERS
from services.ingest.chunking import Chunk, Encoder, chunk_thread
from services.ingest.resources import Resources
from services.ingest.service import servicers
from services.ingest.upkeep import Upkeep
from services.ingest.workspaces import Workspace
from services.runtime.call import Call
from services.runtime.interceptors import call_in_progress
from tests import builders as b
from tests.conftest import Serve
from tests.integration.ingest_fixtures import Ingest, Rows, call_fails, stubs
from tests.integration.lifecycle import build, listed, promote, validate

WORKSPACE = Workspace("W", Source.SLACK, b.TEAM, index_bots=True)
THREAD = [b.slack_record(f"message {n}", n, thread_ts=b.ts_of(0)) for n in range(4)]


def texts(rows: Rows, generation_id: str) -> list[tuple[str, str]]:
    """Chunks with all rows that belong to them."""
    width = rows.one("SELECT width FROM generations WHERE generation_id = %s", generation_id)
    return [
        (row[0], row[1])
        for row in rows.all(
            "SELECT c.chunk_id, c.text FROM chunks c "
            "JOIN chunk_terms USING (workspace_id, generation_id, chunk_id) "
            f"JOIN vectors_{width} USING (workspace_id, generation_id, chunk_id) "
            "WHERE generation_id = %s ORDER BY 1",
            generation_id,
        )
    ]


async def test_the_first_import_makes_its_generation_serve(ingest: Ingest, rows: Rows) -> None:
    report = await ingest.load(b.slack_import(*THREAD, embedder="local"))
    found = await listed(ingest)
    serving = found[report.generation_id]
    assert report.generation_created
    assert serving.state == generations_pb2.GENERATION_STATE_ACTIVE
    assert (serving.embedder, serving.width) == ("local", 384)
    assert (serving.chunks, serving.chunks_without_vector) == (5, 5)
    assert serving.HasField("promoted_at")
    recorded = rows.all("SELECT name, width FROM embedders")
    assert recorded == [("local", 384)]


async def test_a_later_import_keeps_the_generation_and_says_so(ingest: Ingest) -> None:
    await ingest.load(b.slack_import(*THREAD, embedder="local"))
    report = await ingest.load(b.slack_import(*THREAD, embedder="openai"))
    assert (report.generation_id, report.generation_created) == ("g-1", False)
    assert any("generations build --embedder openai" in note for note in report.notes)


async def test_a_generation_is_built_behind_the_serving_one(
    ingest: Ingest, rows: Rows, upkeep: Upkeep
) -> None:
    await ingest.load(b.slack_import(*THREAD, embedder="local"))
    built = await build(ingest, upkeep, "openai")
    assert built.state == generations_pb2.GENERATION_STATE_BUILDING
    assert (built.embedder, built.width) == ("openai", 1536)
    assert texts(rows, built.generation_id) == texts(rows, "g-1")
    states = {name: entry.state for name, entry in (await listed(ingest)).items()}
    assert states == {
        built.generation_id: generations_pb2.GENERATION_STATE_BUILDING,
        "g-1": generations_pb2.GENERATION_STATE_ACTIVE,
    }
    wanted = rows.all("SELECT dedup_key FROM jobs WHERE kind = 'embedding' ORDER BY 1")
    assert wanted == [("g-1",), (built.generation_id,)]


async def test_every_import_edit_and_deletion_reaches_both_generations(
    ingest: Ingest, rows: Rows, upkeep: Upkeep
) -> None:
    await ingest.load(b.slack_import(*THREAD, embedder="local"))
    built = (await build(ingest, upkeep, "openai")).generation_id
    edit = {"user": "U1", "ts": b.ts_of(60)}
    await ingest.load(
        b.slack_import(
            b.slack_record("a new reply", 9, thread_ts=b.ts_of(0)),
            b.slack_record("edited words", 1, thread_ts=b.ts_of(0), edited=edit),
            {"type": "message", "subtype": "tombstone", "ts": b.ts_of(2)},
        )
    )
    assert texts(rows, built) == texts(rows, "g-1")
    together = " ".join(text for _, text in texts(rows, built))
    assert "a new reply" in together and "edited words" in together
    assert "message 1" not in together and "message 2" not in together


async def test_each_generation_keeps_its_own_chunker(
    ingest: Ingest, rows: Rows, upkeep: Upkeep, resources: Resources, serve: Serve
) -> None:
    await ingest.load(b.slack_import(*THREAD, embedder="local"))

    def without_threads(
        messages: Sequence[Message], source: Source, encoder: Encoder
    ) -> list[Chunk]:
        found = chunk_thread(messages, source, encoder)
        return [replace(c, chunk_id=f"2-{c.chunk_id}") for c in found if c.kind == "message"]

    newer = replace(resources, chunkers={**CHUNKERS, "2": without_threads})
    background = Upkeep(newer)
    async with serve(servicers(newer, background)) as peer:
        both = stubs(peer)
        built = (await build(both, background, "local")).generation_id
        await both.load(
            b.slack_import(
                b.slack_record("a new reply", 9, thread_ts=b.ts_of(0)),
                {"type": "message", "subtype": "tombstone", "ts": b.ts_of(2)},
            )
        )
        rows.embed(built, 384)
        await validate(both, built)
        promoted = await promote(both, built)
        assert (promoted.chunker_version, promoted.generation_id) == ("2", built)
    of_each = "SELECT kind, count(*) FROM chunks WHERE generation_id = %s GROUP BY 1 ORDER BY 1"
    assert rows.all(of_each, "g-1") == [("message", 4), ("thread", 1)]
    assert rows.all(of_each, built) == [("message", 4)]
    with call_fails() as errors:
        await ingest.load(b.slack_import(b.slack_record("more", 30)))
    assert errors[0].code == grpc.StatusCode.FAILED_PRECONDITION
    assert "chunker 2" in errors[0].message


async def test_a_build_that_was_stopped_is_continued(
    ingest: Ingest, rows: Rows, upkeep: Upkeep
) -> None:
    entries = [b.slack_record(f"message {n}", n) for n in range(450)]
    await ingest.load(b.slack_import(*entries, embedder="local"))
    begun = (await build(ingest, upkeep, "openai")).generation_id
    # What a stopped build leaves: some of the transactions, each of them whole.
    rows.execute(
        "DELETE FROM chunks WHERE generation_id = %s AND chunk_id > '8'",
        begun,
    )
    stored = "SELECT chunk_id, ctid::text FROM chunks WHERE generation_id = %s"
    before = set(rows.all(stored, begun))
    again = await build(ingest, upkeep, "openai")
    assert again.generation_id == begun
    assert before < set(rows.all(stored, begun))
    assert texts(rows, begun) == texts(rows, "g-1")


async def test_a_restarted_process_continues_a_build(
    ingest: Ingest, rows: Rows, resources: Resources
) -> None:
    await ingest.load(b.slack_import(*THREAD, embedder="local"))
    _, begun = await build_generation(resources, "W", "openai")
    restarted = Upkeep(resources)
    restarted.resume()
    await restarted.finished()
    assert texts(rows, begun.generation_id) == texts(rows, "g-1")


async def test_filling_outlives_the_deadline_of_the_call_that_asked(
    ingest: Ingest, rows: Rows, resources: Resources, upkeep: Upkeep
) -> None:
    await ingest.load(b.slack_import(*THREAD, embedder="local"))
    _, begun = await build_generation(resources, "W", "openai")
    long_over = time.monotonic() - 60
    with call_in_progress(Call("request", None, long_over)):
        upkeep.fill(WORKSPACE, begun.generation_id)
        await upkeep.finished()
    assert texts(rows, begun.generation_id) == texts(rows, "g-1")


async def test_a_new_generation_takes_known_vectors_from_the_cache(
    ingest: Ingest, rows: Rows, upkeep: Upkeep
) -> None:
    await ingest.load(b.slack_import(*THREAD, embedder="local"))
    rows.embed("g-1", 384)
    jobs = rows.all("SELECT job_id, ctid::text FROM jobs")
    built = await build(ingest, upkeep, "local")
    assert (await listed(ingest))[built.generation_id].chunks_without_vector == 0
    assert rows.all("SELECT job_id, ctid::text FROM jobs") == jobs
    same = (
        "SELECT count(*) FROM vectors_384 a JOIN vectors_384 b USING (workspace_id, chunk_id) "
        "WHERE a.generation_id < b.generation_id AND a.embedding = b.embedding"
    )
    assert rows.one(same) == 5


async def test_validation_is_refused_until_every_chunk_has_a_vector_or_a_reason(
    ingest: Ingest, rows: Rows, upkeep: Upkeep
) -> None:
    await ingest.load(b.slack_import(*THREAD, embedder="local"))
    built = (await build(ingest, upkeep, "openai")).generation_id
    with call_fails() as errors:
        await validate(ingest, built)
    assert errors[0].code == grpc.StatusCode.FAILED_PRECONDITION
    assert errors[0].reason == error_pb2.ERROR_REASON_GENERATION_NOT_READY
    assert "5 chunks have no vector yet" in errors[0].message
    assert (await listed(ingest))[built].state == generations_pb2.GENERATION_STATE_BUILDING
    with call_fails() as errors:
        await promote(ingest, built)
    assert "generations validate" in errors[0].message
    one = rows.one("SELECT min(chunk_id) FROM vectors_1536")
    rows.execute("UPDATE vectors_1536 SET skipped = 'refused' WHERE chunk_id = %s", one)
    rows.execute(
        "UPDATE vectors_1536 SET embedding = array_fill(0.5::real, ARRAY[1536])::vector "
        "WHERE skipped IS NULL"
    )
    assert (await validate(ingest, built)).state == generations_pb2.GENERATION_STATE_READY
    promoted = await promote(ingest, built)
    assert promoted.state == generations_pb2.GENERATION_STATE_ACTIVE
    assert (await listed(ingest))["g-1"].state == generations_pb2.GENERATION_STATE_READY
    assert rows.one("SELECT superseded_at IS NOT NULL FROM generations WHERE state = 'ready'")


async def test_promotion_is_refused_while_a_message_or_a_row_is_missing(
    ingest: Ingest, rows: Rows, upkeep: Upkeep
) -> None:
    await ingest.load(b.slack_import(*THREAD, embedder="local"))
    built = (await build(ingest, upkeep, "openai")).generation_id
    rows.embed(built, 1536)
    await validate(ingest, built)
    rows.execute("DELETE FROM chunks WHERE generation_id = %s AND kind = 'message'", built)
    rows.execute("DELETE FROM chunk_terms WHERE generation_id = %s", built)
    with call_fails() as errors:
        await promote(ingest, built)
    assert errors[0].reason == error_pb2.ERROR_REASON_GENERATION_NOT_READY
    assert "4 messages have no chunk and 1 chunks" in errors[0].message
    with call_fails() as errors:
        await validate(ingest, built)
    assert errors[0].reason == error_pb2.ERROR_REASON_GENERATION_NOT_READY


async def test_the_superseded_generation_follows_and_is_the_way_back(
    ingest: Ingest, rows: Rows, upkeep: Upkeep
) -> None:
    await ingest.load(b.slack_import(*THREAD, embedder="local"))
    rows.embed("g-1", 384)
    built = (await build(ingest, upkeep, "openai")).generation_id
    rows.embed(built, 1536)
    await validate(ingest, built)
    await promote(ingest, built)
    await promote(ingest, built)
    await ingest.load(b.slack_import(b.slack_record("later", 30)))
    assert texts(rows, "g-1") == texts(rows, built)
    rows.embed("g-1", 384)
    back = await promote(ingest, "g-1")
    assert back.state == generations_pb2.GENERATION_STATE_ACTIVE
    assert rows.all("SELECT state, superseded_at IS NULL FROM generations ORDER BY 1") == [
        ("active", True),
        ("ready", False),
    ]


async def test_a_generation_is_retired_only_after_thirty_minutes_without_serving(
    ingest: Ingest, rows: Rows, upkeep: Upkeep
) -> None:
    await ingest.load(b.slack_import(*THREAD, embedder="local"))
    names = ["g-1"]
    for _ in range(3):
        built = await build(ingest, upkeep, "openai")
        rows.embed(built.generation_id, 1536)
        if len(names) == 3:
            rows.execute(
                "UPDATE generations SET superseded_at = now() - interval '30 minutes' "
                "WHERE generation_id = 'g-1'"
            )
        await validate(ingest, built.generation_id)
        await promote(ingest, built.generation_id)
        names.append(built.generation_id)
    await upkeep.finished()
    states = {name: entry.state for name, entry in (await listed(ingest)).items()}
    assert [states[name] for name in names] == [
        generations_pb2.GENERATION_STATE_RETIRED,
        generations_pb2.GENERATION_STATE_READY,
        generations_pb2.GENERATION_STATE_READY,
        generations_pb2.GENERATION_STATE_ACTIVE,
    ]
    kept = rows.all("SELECT DISTINCT generation_id FROM chunks ORDER BY 1")
    assert kept == [(name,) for name in sorted(names[1:])]
    with call_fails() as errors:
        await promote(ingest, "g-1")
    assert errors[0].reason == error_pb2.ERROR_REASON_GENERATION_NOT_READY


async def test_an_unknown_generation_is_not_found(ingest: Ingest) -> None:
    await ingest.load(b.slack_import(*THREAD))
    with call_fails() as errors:
        await promote(ingest, "g-99")
    assert errors[0].code == grpc.StatusCode.NOT_FOUND
    assert errors[0].reason == error_pb2.ERROR_REASON_GENERATION_NOT_FOUND
