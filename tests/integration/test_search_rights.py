"""What may not be read is never told: no text, name, count or hint."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import psycopg
import pytest

from recall.corpus.v1 import corpus_pb2
from recall.retrieve.v1 import retrieve_pb2
from tests.conftest import Serve
from tests.integration.retrieve_stage import (
    SECRET,
    Stub,
    asked,
    ids,
    local_embedder,
    retrieve_stage,
    seed_four_messages,
)
from tests.integration.seed import Seed, direction


@pytest.fixture
def seed(database_url: str) -> Iterator[Seed]:
    with psycopg.connect(database_url, autocommit=True) as connection:
        yield seed_four_messages(connection)


@pytest.fixture
async def stub(seed: Seed, database_url: str, serve: Serve) -> AsyncIterator[Stub]:
    await seed.embed(local_embedder())
    async with retrieve_stage(database_url, serve) as client:
        yield client


async def test_empty_channels_read_nothing(stub: Stub) -> None:
    request = retrieve_pb2.SearchRequest(
        context=corpus_pb2.QueryContext(
            source=corpus_pb2.SOURCE_SLACK, workspace_id="no-such-workspace"
        ),
        question="postgres",
    )
    found = await stub.Search(request)
    assert found.abstained
    assert "No channel may be read" in found.reason
    assert not found.hits and not found.timings_ms


@pytest.mark.parametrize("typed", ["in:#layoffs", "in:layoffs", "in:C9", "in:<#C9|layoffs>"])
async def test_a_channel_that_may_not_be_read_is_answered_like_an_unknown_one(
    stub: Stub, typed: str
) -> None:
    name = typed.removeprefix("in:").strip("<#>").split("|")[0]
    hidden = await stub.Search(asked(f"zeppelin {typed}", explain=True))
    unknown = await stub.Search(asked(f"zeppelin {typed.replace(name, 'nosuch')}", explain=True))
    assert hidden.reason == f"There is no channel “{name}” that you can read."
    assert _without_name(hidden, name) == _without_name(unknown, "nosuch")


def _without_name(found: retrieve_pb2.SearchResponse, name: str) -> retrieve_pb2.SearchResponse:
    copy = retrieve_pb2.SearchResponse()
    copy.CopyFrom(found)
    copy.reason = copy.reason.replace(name, "?")
    copy.filter.in_channel = copy.filter.in_channel.replace(name, "?")
    return copy


async def test_a_person_who_writes_only_elsewhere_is_answered_like_an_unknown_one(
    stub: Stub,
) -> None:
    hidden = await stub.Search(asked("zeppelin from:Ghost"))
    unknown = await stub.Search(asked("zeppelin from:Nobody"))
    assert hidden.reason == "There is no message by “Ghost” that you can read."
    assert unknown.reason == "There is no message by “Nobody” that you can read."
    assert ids(await stub.Search(asked("zeppelin from:Ghost", "C9"))) == [SECRET]


async def test_nothing_of_an_unreadable_channel_shows(stub: Stub) -> None:
    found = await stub.Search(asked("zeppelin project in layoffs by Ghost", explain=True))
    told = str(found).replace(found.question, "").replace(found.explanation.lexical_query, "")
    for hidden in ("zeppelin", "layoffs", "C9", "Ghost", "U9"):
        assert hidden not in told
    assert SECRET not in ids(found)


async def test_unreadable_messages_change_no_signal(stub: Stub, seed: Seed) -> None:
    before = await stub.Search(asked("zeppelin postgres command", explain=True))
    for number in range(20):
        seed.message(
            f"slack:T1:C9:7.{number:06}",
            "zeppelin command",
            channel_id="C9",
            author_id="U9",
            vector=direction(1),
        )
    after = await stub.Search(asked("zeppelin postgres command", explain=True))
    for found in (before, after):
        found.timings_ms.clear()
    assert before == after


async def test_another_tenants_rows_never_show(stub: Stub, seed: Seed) -> None:
    other = Seed(seed.connection, "T2", generation_id="G1").workspace()
    other.channel("C1", "ops")
    stolen = other.message(
        "slack:T2:C1:1.000001", "28P01 postgres command failure", vector=direction(1)
    )
    found = await stub.Search(asked("28P01 postgres command failure", explain=True))
    assert stolen not in str(found)
