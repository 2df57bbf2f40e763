"""Ingest for integration tests: its resources on a fresh database, and its stubs over gRPC."""

from __future__ import annotations

import base64
import itertools
import struct
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import psycopg
import pytest

from recall.ingest.v1 import (
    generations_pb2_grpc,
    ingest_pb2,
    ingest_pb2_grpc,
    jobs_pb2_grpc,
    slack_pb2_grpc,
)
from services.embedding.registry import Embedders, EmbeddingSettings
from services.ingest.chunking import Encoder
from services.ingest.resources import Resources
from services.ingest.service import servicers
from services.ingest.token_cipher import TokenCipher
from services.ingest.tokens import load_encoder
from services.ingest.upkeep import Upkeep
from services.runtime import db
from services.runtime.client import Peer
from services.runtime.errors import CallError, from_rpc_error
from tests.builders import Request, as_stream
from tests.conftest import Serve

# A Fernet key as RECALL_TOKEN_KEY would hold it.
TOKEN_KEY = base64.urlsafe_b64encode(bytes(range(32))).decode()


@pytest.fixture(scope="session")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Encoder:
    """The real tokenizer."""
    return load_encoder(tmp_path_factory.mktemp("tiktoken"))


@pytest.fixture
async def embedders() -> AsyncIterator[Embedders]:
    """Both embedders; the key is never used, since ingest itself embeds nothing."""
    made = Embedders(EmbeddingSettings(openai_api_key="sk-not-used-in-these-tests"))
    yield made
    await made.aclose()


@pytest.fixture
def resources(
    ingest_pool: db.Pool, queue_pool: db.Pool, encoder: Encoder, embedders: Embedders
) -> Resources:
    """What ingest works with."""
    numbers = itertools.count(1)
    return Resources(
        ingest_pool,
        queue_pool,
        encoder,
        embedders,
        lambda: f"g-{next(numbers)}",
        tokens=TokenCipher([TOKEN_KEY]),
    )


@pytest.fixture
async def upkeep(resources: Resources) -> AsyncIterator[Upkeep]:
    """The background work of the served process."""
    running = Upkeep(resources)
    yield running
    await running.stop()


@dataclass
class Ingest:
    """Stubs of a running ingest, and short ways to use them."""

    ingest: ingest_pb2_grpc.IngestServiceAsyncStub
    directory: ingest_pb2_grpc.DirectoryServiceAsyncStub
    generations: generations_pb2_grpc.GenerationServiceAsyncStub
    jobs: jobs_pb2_grpc.JobServiceAsyncStub
    deliveries: slack_pb2_grpc.DeliveryServiceAsyncStub
    feedback: slack_pb2_grpc.FeedbackServiceAsyncStub
    installations: slack_pb2_grpc.InstallationServiceAsyncStub
    settings: slack_pb2_grpc.SettingsServiceAsyncStub

    async def load(self, requests: Iterable[Request]) -> ingest_pb2.ImportReport:
        """Import to the end; the report."""
        return (await self.events(requests))[-1].report

    async def events(self, requests: Iterable[Request]) -> list[ingest_pb2.ImportMessagesResponse]:
        """Import to the end; everything that came back."""
        return [event async for event in self.ingest.ImportMessages(as_stream(requests))]


@pytest.fixture
async def ingest(resources: Resources, upkeep: Upkeep, serve: Serve) -> AsyncIterator[Ingest]:
    """A running ingest process."""
    async with serve(servicers(resources, upkeep)) as peer:
        yield stubs(peer)


def stubs(peer: Peer) -> Ingest:
    """The stubs of an ingest process."""
    channel: Any = peer.channel()
    return Ingest(
        ingest_pb2_grpc.IngestServiceStub(channel),
        ingest_pb2_grpc.DirectoryServiceStub(channel),
        generations_pb2_grpc.GenerationServiceStub(channel),
        jobs_pb2_grpc.JobServiceStub(channel),
        slack_pb2_grpc.DeliveryServiceStub(channel),
        slack_pb2_grpc.FeedbackServiceStub(channel),
        slack_pb2_grpc.InstallationServiceStub(channel),
        slack_pb2_grpc.SettingsServiceStub(channel),
    )


@pytest.fixture
def rows(database_url: str) -> Iterator[Rows]:
    """Looks into the database as its owner."""
    with psycopg.connect(database_url, autocommit=True) as connection:
        yield Rows(connection)


@dataclass
class Rows:
    """Reads rows past every wall."""

    connection: psycopg.Connection

    def all(self, query: str, *parameters: object) -> list[tuple[Any, ...]]:
        """All rows of a query."""
        return self.connection.execute(query.encode(), parameters).fetchall()

    def one(self, query: str, *parameters: object) -> Any:
        """The first column of the first row."""
        return self.all(query, *parameters)[0][0]

    def execute(self, statement: str, *parameters: object) -> None:
        """Run a statement."""
        self.connection.execute(statement.encode(), parameters)

    def snapshot(self) -> dict[str, list[tuple[Any, ...]]]:
        """Every row version of every table that an import writes.

        Equal snapshots mean that nothing was written between them: not even the same values.
        """
        tables = (
            "workspaces", "people", "channels", "channel_members", "messages", "tombstones",
            "generations", "chunks", "chunk_messages", "chunk_terms", "vectors_384",
            "vectors_1536", "embedding_cache", "jobs",
        )  # fmt: skip
        return {
            table: self.all(f"SELECT ctid::text, xmin::text, xmax::text FROM {table} ORDER BY 1")
            for table in tables
        }

    def embed(self, generation_id: str, width: int) -> None:
        """Give each chunk that lacks one a vector, and fill the cache, as the lane does."""
        vector = "[" + ",".join(["0.5"] * width) + "]"
        self.execute(
            f"UPDATE vectors_{width} SET embedding = %s::vector "
            "WHERE generation_id = %s AND embedding IS NULL",
            vector,
            generation_id,
        )
        self.execute(
            "INSERT INTO embedding_cache "
            "SELECT DISTINCT c.workspace_id, g.embedder_fingerprint, c.text_sha256, %s::bytea "
            "FROM chunks c JOIN generations g USING (workspace_id, generation_id) "
            "WHERE generation_id = %s ON CONFLICT DO NOTHING",
            struct.pack(f"<{width}f", *[0.5] * width),
            generation_id,
        )

    def found(self, word: str) -> list[str]:
        """Kinds of the chunks in which the lexical arm finds a word, in any generation."""
        return [
            row[0]
            for row in self.all(
                "SELECT c.kind FROM chunk_terms t "
                "JOIN chunks c USING (workspace_id, generation_id, chunk_id) "
                "WHERE t.terms @@ to_tsquery('simple', %s) ORDER BY 1",
                word,
            )
        ]


@contextmanager
def call_fails() -> Iterator[list[CallError]]:
    """Expect a failed call; the list holds its error after the block."""
    errors: list[CallError] = []
    with pytest.raises(grpc.RpcError) as raised:
        yield errors
    errors.append(from_rpc_error(raised.value))


def data_folder() -> Path:
    """Archives that nobody here wrote. Missing data fails a run, it never skips."""
    folder = Path(__file__).parents[3] / "shared" / "data"
    assert folder.is_dir(), f"{folder} is missing: put the shared data beside the repository."
    return folder
