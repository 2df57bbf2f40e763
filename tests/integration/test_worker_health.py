"""A worker tells probes how it is, over a real connection."""

from __future__ import annotations

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from services.runtime.config import ConfigError, Settings
from services.runtime.server import ALIVE, Listener
from services.runtime.worker_health import read_health_listener, telling_health
from tests.e2e.conftest import free_port_base

Response = health_pb2.HealthCheckResponse


async def check(port: int, service: str) -> int:
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        request = health_pb2.HealthCheckRequest(service=service)
        reply: health_pb2.HealthCheckResponse = await health_pb2_grpc.HealthStub(channel).Check(
            request
        )
        return int(reply.status)


@pytest.mark.parametrize(("is_ready", "overall"), [(True, "SERVING"), (False, "NOT_SERVING")])
async def test_a_worker_is_alive_and_as_ready_as_its_database(is_ready: bool, overall: str) -> None:
    async def ready() -> bool:
        return is_ready

    port = free_port_base()
    async with telling_health(Listener("127.0.0.1", port), ready):
        assert await check(port, ALIVE) == Response.SERVING
        assert await check(port, "") == Response.ServingStatus.Value(overall)


async def test_without_a_port_nothing_listens() -> None:
    async def ready() -> bool:
        return True

    assert read_health_listener(Settings({}), "INGEST_WORKER") is None
    async with telling_health(None, ready):
        pass


def test_the_port_is_read_and_checked() -> None:
    environ = {"RECALL_INGEST_WORKER_PORT": "7407", "RECALL_INGEST_WORKER_HOST": "0.0.0.0"}
    assert read_health_listener(Settings(environ), "INGEST_WORKER") == Listener("0.0.0.0", 7407)
    with pytest.raises(ConfigError, match="RECALL_INGEST_WORKER_PORT"):
        read_health_listener(Settings({"RECALL_INGEST_WORKER_PORT": "many"}), "INGEST_WORKER")
