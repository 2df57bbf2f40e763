"""Filters narrow what is read, message by message."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import psycopg
import pytest

from recall.corpus.v1 import corpus_pb2
from services.corpus import timestamp
from tests.conftest import Serve
from tests.integration.retrieve_stage import (
    FIX,
    LUNCH,
    ROOT,
    Stub,
    asked,
    ids,
    local_embedder,
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


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ("in:#ops", {ROOT, FIX}),
        ("in:OPS", {ROOT, FIX}),
        ("in:C2", {LUNCH}),
        ("from:Tomo", {FIX}),
        ("from:@tomo", {FIX}),
        ('from:"linnea berg"', {ROOT, LUNCH}),
        ("from:lberg", {ROOT, LUNCH}),
        ("from:LINNEA", {ROOT, LUNCH}),
        ("from:U2", {FIX}),
        ("from:linnea in:random", {LUNCH}),
        ("after:2026-09-01 before:2026-09-02", {ROOT, FIX, LUNCH}),
        ("before:2026-09-01", set()),
        ("after:2026-09-02", set()),
    ],
)
async def test_filters_typed_or_set_narrow_what_is_read(
    stub: Stub, filters: str, expected: set[str]
) -> None:
    found = await stub.Search(asked(f"28P01 postgres lunch {filters}", explain=True))
    assert set(ids(found)) == expected
    assert found.question == "28P01 postgres lunch"
    listed = {
        message_id
        for chunk in (*found.explanation.dense, *found.explanation.lexical)
        for message_id in chunk.message_ids
    }
    assert listed == expected
    assert found.abstained is (not expected)
    assert bool(found.reason) is found.abstained


async def test_a_message_of_a_thread_that_fails_the_filter_never_appears(stub: Stub) -> None:
    found = await stub.Search(
        asked(
            "28P01 failure",
            filter=corpus_pb2.Filter(posted_after=timestamp(at(1)), author="U2"),
            explain=True,
        )
    )
    assert ids(found) == [FIX]
    assert ROOT not in str(found.explanation)
    assert {part.chunk_kind for part in found.hits[0].contributions} == {"message", "thread"}


async def test_a_typed_filter_wins_over_a_set_one(stub: Stub) -> None:
    found = await stub.Search(
        asked("postgres lunch in:random", filter=corpus_pb2.Filter(in_channel="#ops"))
    )
    assert found.filter.in_channel == "random"
    assert ids(found) == [LUNCH]


async def test_namesakes_are_all_meant(stub: Stub, seed: Seed) -> None:
    seed.person("U3", "linnea.k", "Linnea Kask")
    other = seed.message(
        "slack:T1:C1:1.000001", "postgres is up", author_id="U3", vector=direction(1)
    )
    by_first_name = await stub.Search(asked("postgres from:Linnea"))
    # "linnea" is U1's whole display name: more exact than a first name.
    assert other not in ids(by_first_name)
    assert other in ids(await stub.Search(asked('postgres from:"Linnea Kask"')))


async def test_an_author_without_a_directory_entry_is_found_by_the_records_name(
    stub: Stub, seed: Seed
) -> None:
    alert = seed.message(
        "slack:T1:C1:1.000001",
        "postgres disk 91%",
        author_id="B7",
        author_name="Watchman",
        vector=direction(1),
    )
    found = await stub.Search(asked("postgres from:watchman"))
    assert ids(found) == [alert]
    assert found.hits[0].message.author_name == "Watchman"
