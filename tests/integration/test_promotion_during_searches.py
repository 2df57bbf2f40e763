"""A promotion in the middle of searches: each of them reads one generation from start to end."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

import numpy as np
import pytest

from recall.corpus.v1 import corpus_pb2
from recall.retrieve.v1 import retrieve_pb2, retrieve_pb2_grpc
from services.embedding import local, openai_embedder
from services.embedding.identity import Embedder, EmbedderIdentity, Skipped, Vector
from services.embedding.registry import Embedders, EmbeddingSettings
from services.ingest.resources import Resources
from services.ingest.rollback_generation import Rollback, rollback_generation
from services.ingest.upkeep import Upkeep
from services.retrieve.search import Retrieval
from services.retrieve.service import SERVICE_NAME, RetrieveServicer
from services.runtime import db
from services.runtime.server import Servicers
from tests import builders as b
from tests.conftest import Serve
from tests.integration.ingest_fixtures import Ingest, Rows
from tests.integration.lifecycle import build, promote, validate
from tests.integration.retrieve_stage import NOW, Stub

MESSAGES = 40
SEARCHES = 1_000
# As many as the pool of a retrieve process serves without making anybody wait for long.
AT_ONCE = 16
LIMIT = 12


@dataclass(frozen=True)
class FirstAxis:
    """A double of a model: every text points along the first axis."""

    identity: EmbedderIdentity

    async def embed_question(self, text: str) -> Vector:
        """The same for every question."""
        axis: Vector = np.eye(1, self.identity.width, dtype=np.float32)[0]
        return axis

    async def embed_passages(self, texts: Sequence[str]) -> list[Vector | Skipped]:
        """Not asked for here: the rows get their vectors from the test."""
        raise NotImplementedError

    async def aclose(self) -> None:
        """There is nothing to close."""


class FirstAxes(Embedders):
    """Both models' doubles."""

    def by_fingerprint(self, fingerprint: str) -> Embedder:
        """The double with that identity."""
        identities = (local.IDENTITY, openai_embedder.IDENTITY)
        return FirstAxis(next(each for each in identities if each.fingerprint == fingerprint))


@pytest.fixture
async def stub(retrieve_pool: db.Pool, serve: Serve) -> AsyncIterator[Stub]:
    """A running retrieve stage with the doubles."""
    embedders = FirstAxes(EmbeddingSettings())
    servicer = RetrieveServicer(Retrieval(retrieve_pool, embedders, lambda: NOW, time.monotonic))
    served = Servicers(
        lambda server: retrieve_pb2_grpc.add_RetrieveServiceServicer_to_server(servicer, server),
        (SERVICE_NAME,),
        lambda: db.can_read(retrieve_pool),
    )
    async with serve(served) as peer:
        yield retrieve_pb2_grpc.RetrieveServiceStub(peer.channel())


def lean(rows: Rows, generation_id: str, width: int, *, nearest_first: bool) -> list[str]:
    """Turn each message's vector a little further away from the question; ids, best first."""
    message_ids = [b.message_id(number) for number in range(MESSAGES)]
    ranked = message_ids if nearest_first else message_ids[::-1]
    for rank, message_id in enumerate(ranked):
        vector = np.zeros(width)
        vector[:2] = np.cos(rank / MESSAGES), np.sin(rank / MESSAGES)
        rows.execute(
            f"UPDATE vectors_{width} SET embedding = %s::vector WHERE generation_id = %s "
            "AND chunk_id IN (SELECT chunk_id FROM chunk_messages WHERE message_id = %s)",
            "[" + ",".join(map(str, vector)) + "]",
            generation_id,
            message_id,
        )
    return ranked[:LIMIT]


def question(generation_id: str = "") -> retrieve_pb2.SearchRequest:
    """No message holds its words, so the order is the dense arm's alone."""
    return retrieve_pb2.SearchRequest(
        context=corpus_pb2.QueryContext(
            source=corpus_pb2.SOURCE_SLACK, workspace_id="W", channel_ids=[b.GENERAL]
        ),
        question="unheard",
        limit=LIMIT,
        pin=corpus_pb2.Pin(generation_id=generation_id) if generation_id else None,
    )


def outcome(found: retrieve_pb2.SearchResponse) -> tuple[str, tuple[str, ...], frozenset[str]]:
    """Pin, messages in order, and the generations that the hits say they come from."""
    return (
        found.pin.generation_id,
        tuple(hit.message.message_id for hit in found.hits),
        frozenset(hit.provenance.generation_id for hit in found.hits),
    )


async def swap_until(resources: Resources, over: asyncio.Event, moment: random.Random) -> int:
    """Let the two generations take turns at random moments; how often they did."""
    swaps = 0
    while not over.is_set():
        await asyncio.sleep(moment.uniform(0, 0.02))
        await rollback_generation(resources, Rollback("W"))
        swaps += 1
    return swaps


async def test_a_thousand_searches_never_mix_two_generations(
    ingest: Ingest, rows: Rows, upkeep: Upkeep, resources: Resources, stub: Stub
) -> None:
    texts = [b.slack_record(f"message number {n}", n) for n in range(MESSAGES)]
    await ingest.load(b.slack_import(*texts, embedder="local"))
    built = (await build(ingest, upkeep)).generation_id
    expected = {
        "g-1": lean(rows, "g-1", 384, nearest_first=True),
        built: lean(rows, built, 1536, nearest_first=False),
    }
    await validate(ingest, built)
    await promote(ingest, built)
    over, at_once = asyncio.Event(), asyncio.Semaphore(AT_ONCE)
    swapping = asyncio.create_task(swap_until(resources, over, random.Random(7)))

    async def search(number: int) -> tuple[str, tuple[str, ...], frozenset[str]]:
        # Some carry a pin, as every later step of a question does.
        pin = ("", "g-1", built)[number % 3]
        async with at_once:
            return outcome(await stub.Search(question(pin)))

    try:
        found = await asyncio.gather(*map(search, range(SEARCHES)))
    finally:
        over.set()
        swaps = await swapping
    right = {(name, tuple(ids), frozenset((name,))) for name, ids in expected.items()}
    assert set(found) == right
    assert [pin for pin, _, _ in found[1::3]] == ["g-1"] * len(found[1::3])
    unpinned = Counter(pin for pin, _, _ in found[::3])
    assert set(unpinned) == {"g-1", built}
    assert swaps > 2
