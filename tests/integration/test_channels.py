"""Client channels: made after a fork, balanced over what DNS says now."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import grpc

from recall.rerank.v1 import rerank_pb2
from services.runtime.callers import Callers
from services.runtime.client import Peer, server_options
from services.runtime.interceptors import CallInterceptor
from services.runtime.server import Listener, serving
from tests.conftest import free_port
from tests.fakes.dns_server import OneNameDns
from tests.integration.test_bootstrap import answer, rerank, servicers

REPOSITORY = Path(__file__).resolve().parents[2]

FORKING = """
import asyncio, os, sys
from recall.rerank.v1 import rerank_pb2, rerank_pb2_grpc
from services.runtime.client import Peer

peer = Peer(sys.argv[1], lambda: sys.argv[2])

async def call():
    stub = rerank_pb2_grpc.RerankServiceStub(peer.channel())
    reply = await stub.Rerank(rerank_pb2.RerankRequest(), timeout=10)
    await peer.close()
    return reply.model

def child():
    os._exit(0 if asyncio.run(call()) == "served" else 1)

# The peer exists before the fork; its channel does not.
children = []
for _ in range(3):
    pid = os.fork()
    if pid == 0:
        child()
    children.append(pid)
sys.exit(max(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children))
"""


async def test_a_peer_made_before_a_fork_works_in_every_child(callers: Callers) -> None:
    async with serving(Listener("127.0.0.1", 0), callers, servicers(answer)) as running:
        script = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", FORKING, f"127.0.0.1:{running.port}"),
            callers.token_of("operator"),
            env={"PYTHONPATH": f"{REPOSITORY}:{REPOSITORY / 'gen'}"},
            stderr=subprocess.PIPE,
        )
        _, errors = await asyncio.wait_for(script.communicate(), 60)
    assert script.returncode == 0, errors.decode()


@asynccontextmanager
async def replica(host: str, port: int, callers: Callers) -> AsyncIterator[None]:
    """One replica that says its address and ends connections after half a second."""

    async def name(_: rerank_pb2.RerankRequest) -> rerank_pb2.RerankResponse:
        return rerank_pb2.RerankResponse(model=host)

    server = grpc.aio.server(
        interceptors=[CallInterceptor(callers)],
        options=server_options(max_connection_age_milliseconds=500),
    )
    servicers(name).register(server)
    server.add_insecure_port(f"{host}:{port}")
    await server.start()
    try:
        yield
    finally:
        await server.stop(0.5)


async def test_a_new_replica_is_used_and_a_dead_one_costs_no_call(callers: Callers) -> None:
    port, dns = free_port(), OneNameDns(["127.0.0.1", "127.0.0.2"])
    dns_port = await dns.start()
    peer = Peer(
        f"dns://127.0.0.1:{dns_port}/rerank.test:{port}", lambda: callers.token_of("operator")
    )
    async with replica("127.0.0.2", port, callers), replica("127.0.0.3", port, callers):
        async with replica("127.0.0.1", port, callers):
            both = {(await rerank(peer)).model for _ in range(20)}
            dns.addresses = ["127.0.0.2", "127.0.0.3"]
        # One of the first two is gone now; no call may notice.
        seen, deadline = set(), time.monotonic() + 30
        while "127.0.0.3" not in seen and time.monotonic() < deadline:
            seen.add((await rerank(peer)).model)
            await asyncio.sleep(0.02)
    await peer.close()
    dns.stop()
    assert both == {"127.0.0.1", "127.0.0.2"}
    assert seen == {"127.0.0.2", "127.0.0.3"}
