"""The retrieve stage over real gRPC, for its tests."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from functools import cache
from typing import Any, TypeAlias

import grpc
import psycopg
import pytest

from recall.corpus.v1 import corpus_pb2
from recall.error.v1 import error_pb2
from recall.retrieve.v1 import retrieve_pb2, retrieve_pb2_grpc
from services.embedding.local import LocalEmbedder
from services.embedding.registry import Embedders, EmbeddingSettings
from services.retrieve.search import Retrieval
from services.retrieve.service import SERVICE_NAME, RetrieveServicer
from services.runtime import db
from services.runtime.errors import from_rpc_error
from services.runtime.server import Servicers
from tests.conftest import Serve
from tests.integration.seed import Seed, at

Stub: TypeAlias = "retrieve_pb2_grpc.RetrieveServiceAsyncStub"

ROOT = "slack:T1:C1:1788253200.000100"
FIX = "slack:T1:C1:1788253260.000200"
LUNCH = "slack:T1:C2:1788253320.000300"
SECRET = "slack:T1:C9:1788253380.000400"

NOW = datetime(2026, 9, 10, 12, tzinfo=UTC)


@cache
def embedders() -> Embedders:
    """Without a key; the local model is loaded once a run."""
    return Embedders(EmbeddingSettings())


@cache
def local_embedder() -> LocalEmbedder:
    """The local model, as the seed needs it."""
    return LocalEmbedder(threads=1)


def servicers(pool: db.Pool) -> Servicers:
    """Retrieve on a pool of the read-only role."""
    servicer = RetrieveServicer(Retrieval(pool, embedders(), lambda: NOW, time.monotonic))
    return Servicers(
        lambda server: retrieve_pb2_grpc.add_RetrieveServiceServicer_to_server(servicer, server),
        (SERVICE_NAME,),
        lambda: db.can_read(pool),
    )


@asynccontextmanager
async def retrieve_stage(database_url: str, serve: Serve) -> AsyncIterator[Stub]:
    """A client of a running stage."""
    async with (
        db.open_pool(db.url_as_role(database_url, db.RETRIEVE_ROLE)) as pool,
        serve(servicers(pool)) as peer,
    ):
        yield retrieve_pb2_grpc.RetrieveServiceStub(peer.channel())


def reader(*channel_ids: str, workspace_id: str = "T1") -> corpus_pb2.QueryContext:
    """Somebody who may read these channels of a Slack workspace."""
    return corpus_pb2.QueryContext(
        source=corpus_pb2.SOURCE_SLACK, workspace_id=workspace_id, channel_ids=channel_ids
    )


def ids(response: retrieve_pb2.SearchResponse) -> list[str]:
    """Ids of a search's messages, best first."""
    return [hit.message.message_id for hit in response.hits]


def seed_four_messages(connection: psycopg.Connection[Any]) -> Seed:
    """A thread in #ops, a message in #random, and one in a private channel."""
    seed = Seed(connection).workspace()
    for channel_id, name, kind in (
        ("C1", "ops", "public"),
        ("C2", "random", "public"),
        ("C9", "layoffs", "private"),
    ):
        seed.channel(channel_id, name, kind)
    seed.person("U1", "linnea", "Linnea Berg", "lberg")
    seed.person("U2", "Tomo", "Tomo Sato")
    seed.person("U9", "Ghost", "Gisela Host")
    question = "Local Postgres fails with 28P01 since this morning, anyone?"
    answer = "Run make db-reset, that fixed the 28P01 password failure here"
    seed.message(ROOT, question, author_id="U1", posted_at=at(0))
    seed.message(FIX, answer, author_id="U2", posted_at=at(1), root_id=ROOT)
    seed.chunk("thread", [ROOT, FIX], f"{question}\n{answer}")
    seed.message(LUNCH, "Lunch is soup today", channel_id="C2", posted_at=at(2))
    seed.message(
        SECRET,
        "The zeppelin project ends and Postgres command reviews stop",
        channel_id="C9",
        author_id="U9",
        posted_at=at(3),
    )
    return seed


def asked(question: str, *channel_ids: str, **fields: object) -> retrieve_pb2.SearchRequest:
    """A question under the rights to #ops and #random, or to the channels given."""
    channels = channel_ids or ("C1", "C2")
    return retrieve_pb2.SearchRequest(
        context=reader(*channels),
        question=question,
        **fields,  # type: ignore[arg-type]
    )


async def refusal(call: grpc.aio.UnaryUnaryCall[Any, Any]) -> tuple[grpc.StatusCode, str]:
    """Code and reason of a call that fails."""
    with pytest.raises(grpc.RpcError) as raised:
        await call
    error = from_rpc_error(raised.value)
    return error.code, error_pb2.ErrorReason.Name(error.reason).removeprefix("ERROR_REASON_")
