"""What a search finds, in which order, and which questions it refuses."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import grpc
import psycopg
import pytest

from recall.corpus.v1 import corpus_pb2
from recall.retrieve.v1 import retrieve_pb2
from services.embedding import local
from services.runtime.errors import from_rpc_error
from tests.conftest import Serve
from tests.integration.retrieve_stage import (
    FIX,
    ROOT,
    Stub,
    asked,
    ids,
    local_embedder,
    refusal,
    retrieve_stage,
    seed_four_messages,
)
from tests.integration.seed import Seed, at, direction


@pytest.fixture
def seed(database_url: str) -> Iterator[Seed]:
    with psycopg.connect(database_url, autocommit=True) as connection:
        yield seed_four_messages(connection)


@pytest.fixture
async def stub(seed: Seed, database_url: str, serve: Serve) -> AsyncIterator[Stub]:
    await seed.embed(local_embedder())
    async with retrieve_stage(database_url, serve) as client:
        yield client


async def test_a_hit_tells_how_it_was_found(stub: Stub) -> None:
    found = await stub.Search(
        asked("Which command fixed the local 28P01 Postgres failure?", explain=True)
    )
    assert (found.abstained, found.reason, found.pin.generation_id) == (False, "", "G1")
    assert found.explanation.lexical_query == (
        "command | fixed | local | 28p01 | postgres | failure"
    )
    assert found.explanation.embedder == local.IDENTITY.model
    assert set(ids(found)[:2]) == {ROOT, FIX}
    hit = next(hit for hit in found.hits if hit.message.message_id == FIX)
    assert hit.message.author_name == "Tomo"
    assert hit.message.channel_name == "ops"
    assert hit.message.thread_root_id == ROOT
    assert hit.message.permalink == (
        "https://acme.slack.com/archives/C1/p1788253260000200?thread_ts=1788253200.000100&cid=C1"
    )
    assert hit.verdict == corpus_pb2.VERDICT_UNVERIFIED
    assert not hit.HasField("confidence")
    assert hit.provenance.generation_id == "G1"
    assert hit.provenance.content_sha256 == hit.message.content_sha256
    assert {part.chunk_kind for part in hit.contributions} == {"message", "thread"}
    assert hit.fused_score == pytest.approx(sum(part.score for part in hit.contributions))
    assert {part.arm for part in hit.contributions} == {
        corpus_pb2.ARM_DENSE,
        corpus_pb2.ARM_LEXICAL,
    }
    assert hit.cosine == pytest.approx(_cosine_of(found, FIX), abs=1e-6)
    assert 0 < hit.term_coverage < 1
    assert set(found.timings_ms) == {"embed", "search"}


def _cosine_of(found: retrieve_pb2.SearchResponse, message_id: str) -> float:
    [own] = [
        chunk
        for chunk in found.explanation.dense
        if chunk.chunk_kind == "message" and list(chunk.message_ids) == [message_id]
    ]
    return 1 - own.score


async def test_one_absent_word_hides_nothing(stub: Stub, seed: Seed) -> None:
    night = "slack:T1:C1:1788253500.000000"
    seed.message(night, "payments worker OOM-restarts nightly", vector=direction(1))
    found = await stub.Search(asked("why does the payments worker restart at night", explain=True))
    assert found.explanation.lexical[0].message_ids == [night]


async def test_all_matching_terms_rank_before_some(stub: Stub, seed: Seed) -> None:
    some = seed.message("slack:T1:C1:1.000001", "the payments page is slow", vector=direction(1))
    every = seed.message("slack:T1:C1:1.000002", "payments worker restarts", vector=direction(1))
    found = await stub.Search(asked("payments worker restarts", explain=True))
    ranked = [chunk.message_ids[0] for chunk in found.explanation.lexical]
    assert ranked == [every, some]


async def test_an_identifier_with_a_hyphen_is_found_by_itself(stub: Stub, seed: Seed) -> None:
    ticket = seed.message("slack:T1:C1:1.000001", "see INC-4821 for that", vector=direction(1))
    seed.message("slack:T1:C1:1.000002", "see INC-4822 for that", vector=direction(1))
    found = await stub.Search(asked("INC-4821", explain=True))
    assert found.explanation.lexical[0].message_ids == [ticket]


async def test_the_limit_and_its_default_hold(stub: Stub, seed: Seed) -> None:
    for number in range(60):
        seed.message(
            f"slack:T1:C1:2.{number:06}", f"postgres note {number}", vector=direction(1, number)
        )
    assert len((await stub.Search(asked("postgres"))).hits) == 12
    assert len((await stub.Search(asked("postgres", limit=3))).hits) == 3
    assert len((await stub.Search(asked("postgres", limit=20))).hits) == 20
    assert await refusal(stub.Search(asked("postgres", limit=51))) == (
        grpc.StatusCode.INVALID_ARGUMENT,
        "INVALID_REQUEST",
    )


async def test_equal_scores_go_to_the_newer_message(stub: Stub, seed: Seed) -> None:
    texts = {f"slack:T1:C2:5.{n:06}": at(minute) for n, minute in enumerate((5, 90, 30, 70))}
    for message_id, posted_at in texts.items():
        seed.message(
            message_id, "rota swap", channel_id="C2", posted_at=posted_at, vector=direction(1)
        )
    found = await stub.Search(asked("rota swap", "C2", explain=True))
    newest_first = sorted(texts, key=lambda message_id: texts[message_id], reverse=True)
    assert [m for m in ids(found) if m in texts] == newest_first
    assert [chunk.message_ids[0] for chunk in found.explanation.lexical] == newest_first


async def test_a_tombstone_hides_its_message_before_its_rows_are_gone(
    stub: Stub, seed: Seed
) -> None:
    seed.delete(FIX)
    found = await stub.Search(asked("make db-reset 28P01", explain=True))
    assert FIX not in ids(found)
    assert FIX not in str(found.explanation)


@pytest.mark.parametrize(
    ("question", "named"),
    [
        ("", "is empty"),
        (" \n", "is empty"),
        ("in:#ops from:Tomo", "only filters"),
        ("in:#ops?", "only filters"),
        ("postgres after:2026-02-30", "after:2026-02-30"),
        ("postgres after:2026-09-02 before:2026-09-01", "earlier"),
        ("x" * 20_001, "20001 characters"),
    ],
)
async def test_a_question_that_can_not_be_searched_says_why(
    stub: Stub, question: str, named: str
) -> None:
    with pytest.raises(grpc.RpcError) as raised:
        await stub.Search(asked(question))
    error = from_rpc_error(raised.value)
    assert error.code == grpc.StatusCode.INVALID_ARGUMENT
    assert named in error.message


@pytest.mark.parametrize(
    "question",
    [
        "team:web",
        "'\":*",
        "O'Dea",
        "a & | ! <-> (",
        "trailing \\",
        "O’Dea ＇x＇",
        "the and of",
        "postgres " * 1_100,
        "x" * 20_000,
        "🚀",
        "a\0b",
        "<|endoftext|> [SEP]",
    ],
)
async def test_any_other_question_is_searched(stub: Stub, question: str) -> None:
    assert (await stub.Search(asked(question))).hits
