"""The retrieve process: its contexts and callers, and what it does while the database is away."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import grpc
import psycopg
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from recall.corpus.v1 import corpus_pb2
from recall.error.v1 import error_pb2
from recall.retrieve.v1 import retrieve_pb2, retrieve_pb2_grpc
from services.embedding.registry import EmbeddingSettings
from services.ingest.migrate import migrate, read_migrations
from services.retrieve.__main__ import assemble
from services.retrieve.config import RetrieveConfig, read_config
from services.retrieve.service import SERVICE_NAME
from services.runtime import db
from services.runtime.callers import Callers
from services.runtime.client import Peer
from services.runtime.config import ConfigError, Settings
from services.runtime.errors import from_rpc_error
from services.runtime.server import Listener, serving
from services.stack.postgres import EmbeddedPostgres
from tests.conftest import Serve, free_port
from tests.integration.retrieve_stage import (
    FIX,
    ROOT,
    Stub,
    asked,
    local_embedder,
    reader,
    refusal,
    retrieve_stage,
    seed_four_messages,
)


@pytest.fixture
def config(database_url: str, tmp_path: Path) -> RetrieveConfig:
    url = db.url_as_role(database_url, db.RETRIEVE_ROLE)
    return RetrieveConfig(tmp_path, "127.0.0.1", 0, url, EmbeddingSettings())


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[EmbeddedPostgres]:
    """A PostgreSQL that the test may stop."""
    server = EmbeddedPostgres(tmp_path / "postgres", free_port(), durable=False)
    yield server
    server.stop()


async def test_the_process_serves_before_its_model_is_loaded(
    config: RetrieveConfig, serve: Serve, database_url: str
) -> None:
    with psycopg.connect(database_url, autocommit=True) as connection:
        await seed_four_messages(connection).embed(local_embedder())
    async with assemble(config) as servicers, serve(servicers) as peer:
        health = health_pb2_grpc.HealthStub(peer.channel())
        state = await health.Check(health_pb2.HealthCheckRequest(service=SERVICE_NAME))
        assert state.status == health_pb2.HealthCheckResponse.SERVING
        stub = retrieve_pb2_grpc.RetrieveServiceStub(peer.channel())
        found = await stub.Search(asked("which command fixed 28P01?"))
    assert {ROOT, FIX} <= {hit.message.message_id for hit in found.hits}


@pytest.mark.parametrize(
    ("context", "named"),
    [
        (corpus_pb2.QueryContext(workspace_id="T1", channel_ids=["C1"]), "context.source"),
        (
            corpus_pb2.QueryContext(source=corpus_pb2.SOURCE_SLACK, channel_ids=["C1"]),
            "context.workspace_id",
        ),
        (reader("C1", workspace_id="T\0"), "context.workspace_id"),
        (reader("C\0"), "context.channel_ids"),
    ],
)
async def test_every_call_needs_a_whole_context(
    database_url: str, serve: Serve, context: corpus_pb2.QueryContext, named: str
) -> None:
    async with retrieve_stage(database_url, serve) as stub:
        for call in (
            stub.ResolvePin(retrieve_pb2.ResolvePinRequest(context=context)),
            stub.Search(retrieve_pb2.SearchRequest(context=context, question="x")),
            stub.ReadMessages(retrieve_pb2.ReadMessagesRequest(context=context)),
            stub.ReadThread(retrieve_pb2.ReadThreadRequest(context=context)),
            stub.ReadTimeline(retrieve_pb2.ReadTimelineRequest(context=context)),
        ):
            with pytest.raises(grpc.RpcError) as raised:
                await call
            error = from_rpc_error(raised.value)
            assert error.code == grpc.StatusCode.INVALID_ARGUMENT
            assert named in error.message


async def test_a_caller_reads_only_the_workspaces_and_channels_it_is_listed_for(
    config: RetrieveConfig, tmp_path: Path
) -> None:
    path = tmp_path / "callers.json"
    path.write_text(
        '{"callers": [{"name": "bot", "token": "0123456789abcdef", "workspaces": ["T1"],'
        ' "channels": ["C1"]}]}'
    )
    path.chmod(0o600)
    denied = (grpc.StatusCode.PERMISSION_DENIED, "CALLER_NOT_ALLOWED")
    async with (
        assemble(config) as servicers,
        serving(Listener("127.0.0.1", 0), Callers(path), servicers) as running,
    ):
        peer = Peer(f"127.0.0.1:{running.port}", lambda: "0123456789abcdef")
        stub = retrieve_pb2_grpc.RetrieveServiceStub(peer.channel())
        for context in (reader("C1", "C2"), reader("C1", workspace_id="T2")):
            search = retrieve_pb2.SearchRequest(context=context, question="x")
            assert await refusal(stub.Search(search)) == denied
            read = retrieve_pb2.ReadMessagesRequest(context=context, message_ids=["a"])
            assert await refusal(stub.ReadMessages(read)) == denied
        await peer.close()


async def test_a_database_that_was_away_is_used_again_without_a_restart(
    own_server: EmbeddedPostgres, serve: Serve
) -> None:
    url = own_server.start()
    migrate(url, read_migrations())
    with psycopg.connect(url, autocommit=True) as connection:
        await seed_four_messages(connection).embed(local_embedder())
    async with retrieve_stage(url, serve) as stub:
        assert (await stub.Search(asked("postgres"))).hits
        own_server.stop()
        away = (grpc.StatusCode.UNAVAILABLE, "DATABASE_UNAVAILABLE")
        assert await refusal(stub.Search(asked("postgres"), timeout=10)) == away
        timeline = retrieve_pb2.ReadTimelineRequest(context=reader("C1"))
        assert await refusal(stub.ReadTimeline(timeline, timeout=10)) == away
        own_server.start()
        await _until_answered(stub)
        answers = await asyncio.gather(
            *(stub.Search(asked("postgres"), timeout=30) for _ in range(20))
        )
    assert all(answer.hits for answer in answers)


async def _until_answered(stub: Stub) -> None:
    """Ask until the stage answers; the call itself waits for a connection."""
    for _ in range(5):
        try:
            await stub.ResolvePin(retrieve_pb2.ResolvePinRequest(context=reader("C1")))
            return
        except grpc.RpcError as error:
            assert from_rpc_error(error).reason == error_pb2.ERROR_REASON_DATABASE_UNAVAILABLE
    pytest.fail("the stage did not come back")


def test_a_missing_database_url_is_one_fault_with_its_remedy() -> None:
    with pytest.raises(ConfigError, match="DATABASE_URL is not set: `make up`"):
        read_config(Settings({}))


def test_the_owners_url_is_used_as_the_read_only_role() -> None:
    url = "postgresql://o:p@h:1/d"
    assert read_config(Settings({"DATABASE_URL": url})).database_url.endswith(
        "role%3Drecall_retrieve"
    )
    own = {"DATABASE_URL": url, "RECALL_RETRIEVE_DATABASE_URL": "postgresql://r@h/d"}
    assert read_config(Settings(own)).database_url == "postgresql://r@h/d"
