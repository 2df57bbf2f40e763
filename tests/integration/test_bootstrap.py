"""What every server does around its calls, over real gRPC."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import grpc
import pytest
from google.rpc import error_details_pb2
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import (
    ProtoReflectionDescriptorDatabase,
)
from grpc_status import rpc_status

from recall.error.v1 import error_pb2
from recall.rerank.v1 import rerank_pb2, rerank_pb2_grpc
from services.runtime import call as calls
from services.runtime.callers import Callers
from services.runtime.client import Peer, channel_options, server_options
from services.runtime.errors import CallError, from_rpc_error, unavailable
from services.runtime.interceptors import CallInterceptor
from services.runtime.server import ALIVE, Listener, Servicers, serving
from tests.conftest import Serve

NAME = "recall.rerank.v1.RerankService"
Behaviour = Callable[[rerank_pb2.RerankRequest], Awaitable[rerank_pb2.RerankResponse]]


class Scripted(rerank_pb2_grpc.RerankServiceServicer):
    """A servicer whose one RPC does what the test says."""

    def __init__(self, behaviour: Behaviour) -> None:
        self._behaviour = behaviour

    async def Rerank(  # noqa: N802
        self, request: rerank_pb2.RerankRequest, context: grpc.aio.ServicerContext[object, object]
    ) -> rerank_pb2.RerankResponse:
        return await self._behaviour(request)


def servicers(behaviour: Behaviour) -> Servicers:
    scripted = Scripted(behaviour)
    return Servicers(
        lambda server: rerank_pb2_grpc.add_RerankServiceServicer_to_server(scripted, server),
        (NAME,),
    )


async def answer(_: rerank_pb2.RerankRequest) -> rerank_pb2.RerankResponse:
    return rerank_pb2.RerankResponse(model="served")


async def left(_: rerank_pb2.RerankRequest) -> rerank_pb2.RerankResponse:
    return rerank_pb2.RerankResponse(model=str(calls.remaining_seconds(10**5)))


async def rerank(peer: Peer, seconds: float | None = 5.0) -> rerank_pb2.RerankResponse:
    stub = rerank_pb2_grpc.RerankServiceStub(peer.channel())
    reply: rerank_pb2.RerankResponse = await stub.Rerank(
        rerank_pb2.RerankRequest(question="q"), timeout=seconds
    )
    return reply


async def failure(peer: Peer) -> CallError:
    with pytest.raises(grpc.aio.AioRpcError) as raised:
        await rerank(peer)
    return from_rpc_error(raised.value)


async def test_a_call_without_a_known_token_reaches_nothing(callers: Callers) -> None:
    async with serving(Listener("127.0.0.1", 0), callers, servicers(answer)) as running:
        stranger = Peer(f"127.0.0.1:{running.port}", lambda: "guessed")
        error = await failure(stranger)
        await stranger.close()
    assert error.code == grpc.StatusCode.UNAUTHENTICATED
    assert error.reason == error_pb2.ERROR_REASON_CALLER_UNKNOWN


async def test_an_error_keeps_its_reason_and_its_wait(serve: Serve) -> None:
    async def fail(_: rerank_pb2.RerankRequest) -> rerank_pb2.RerankResponse:
        raise unavailable(error_pb2.ERROR_REASON_DATABASE_UNAVAILABLE, "Later.", 3.0)

    async with serve(servicers(fail)) as peer:
        error = await failure(peer)
    assert (error.code, error.reason) == (
        grpc.StatusCode.UNAVAILABLE,
        error_pb2.ERROR_REASON_DATABASE_UNAVAILABLE,
    )
    assert (error.message, error.retry_after_seconds) == ("Later.", 3.0)


async def test_a_defect_shows_its_request_id_and_nothing_of_itself(serve: Serve) -> None:
    async def defect(_: rerank_pb2.RerankRequest) -> rerank_pb2.RerankResponse:
        raise ZeroDivisionError("secret detail")

    async with serve(servicers(defect)) as peer:
        error = await failure(peer)
    assert error.code == grpc.StatusCode.INTERNAL
    assert "secret detail" not in error.message
    assert error.metadata["request_id"] in error.message


async def test_errors_carry_error_info_of_the_domain_recall(serve: Serve) -> None:
    async def fail(_: rerank_pb2.RerankRequest) -> rerank_pb2.RerankResponse:
        raise unavailable(error_pb2.ERROR_REASON_STAGE_UNAVAILABLE, "Later.")

    async with serve(servicers(fail)) as peer:
        with pytest.raises(grpc.aio.AioRpcError) as raised:
            await rerank(peer)
    status = rpc_status.from_call(raised.value)
    info = error_details_pb2.ErrorInfo()
    assert status is not None
    assert status.details[0].Unpack(info)
    assert (info.domain, info.reason) == ("recall", "STAGE_UNAVAILABLE")


async def test_each_hop_passes_a_shorter_deadline_and_the_same_request_id(serve: Serve) -> None:
    seen: list[str] = []

    async def last(_: rerank_pb2.RerankRequest) -> rerank_pb2.RerankResponse:
        seen.append(calls.request_id())
        return await left(_)

    async with serve(servicers(last)) as far:

        async def forward(_: rerank_pb2.RerankRequest) -> rerank_pb2.RerankResponse:
            seen.append(calls.request_id())
            here = calls.remaining_seconds(10**5)
            there = float((await rerank(far, None)).model)
            return rerank_pb2.RerankResponse(model=f"{here} {there}")

        async with serve(servicers(forward)) as near:
            here, there = map(float, (await rerank(near)).model.split())
    # On the wire a deadline of some seconds is rounded up to the next 10 ms, and each side turns
    # it into its own clock's milliseconds.
    assert there < here - calls.HOP_MARGIN_SECONDS + 0.015
    assert here < 5.0
    assert len(set(seen)) == 1
    assert seen[0]


async def test_health_and_reflection_need_no_token(callers: Callers) -> None:
    async with (
        serving(Listener("127.0.0.1", 0), callers, servicers(answer)) as running,
        grpc.aio.insecure_channel(f"127.0.0.1:{running.port}") as channel,
    ):
        health = health_pb2_grpc.HealthStub(channel)
        reply = await health.Check(health_pb2.HealthCheckRequest(service=NAME))
        names = await asyncio.to_thread(_reflected, running.port)
    assert reply.status == health_pb2.HealthCheckResponse.SERVING
    assert NAME in names


def _reflected(port: int) -> set[str]:
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        return set(ProtoReflectionDescriptorDatabase(channel).get_services())


async def test_readiness_follows_the_check(callers: Callers) -> None:
    state = {"ready": False}

    async def ready() -> bool:
        return state["ready"]

    served = Servicers(servicers(answer).register, (NAME,), ready)
    async with (
        serving(Listener("127.0.0.1", 0), callers, served) as running,
        grpc.aio.insecure_channel(f"127.0.0.1:{running.port}") as channel,
    ):
        watch = health_pb2_grpc.HealthStub(channel).Watch(health_pb2.HealthCheckRequest())
        assert (await watch.read()).status == health_pb2.HealthCheckResponse.NOT_SERVING
        state["ready"] = True
        assert (await watch.read()).status == health_pb2.HealthCheckResponse.SERVING


async def test_a_process_that_is_not_ready_is_alive(callers: Callers) -> None:
    async def ready() -> bool:
        return False

    served = Servicers(servicers(answer).register, (NAME,), ready)
    async with (
        serving(Listener("127.0.0.1", 0), callers, served) as running,
        grpc.aio.insecure_channel(f"127.0.0.1:{running.port}") as channel,
    ):
        check = health_pb2_grpc.HealthStub(channel).Check
        alive = await check(health_pb2.HealthCheckRequest(service=ALIVE))
        overall = await check(health_pb2.HealthCheckRequest())
    assert alive.status == health_pb2.HealthCheckResponse.SERVING
    assert overall.status == health_pb2.HealthCheckResponse.NOT_SERVING


async def test_a_call_in_progress_survives_the_drain(callers: Callers) -> None:
    entered = asyncio.Event()

    async def slow(_: rerank_pb2.RerankRequest) -> rerank_pb2.RerankResponse:
        entered.set()
        await asyncio.sleep(0.3)
        return rerank_pb2.RerankResponse(model="finished")

    async with serving(Listener("127.0.0.1", 0), callers, servicers(slow)) as running:
        peer = Peer(f"127.0.0.1:{running.port}", lambda: callers.token_of("operator"))
        reply = asyncio.create_task(rerank(peer))
        await entered.wait()
        await running.stop(5.0)
        assert (await reply).model == "finished"
        await peer.close()


async def _idle_call(callers: Callers, options: tuple[tuple[str, int | str], ...]) -> str:
    """A call of 45 seconds without data, over a client that pings every ten (the least allowed)."""

    async def idle(_: rerank_pb2.RerankRequest) -> rerank_pb2.RerankResponse:
        await asyncio.sleep(45.0)
        return rerank_pb2.RerankResponse(model="survived")

    server = grpc.aio.server(interceptors=[CallInterceptor(callers)], options=options)
    servicers(idle).register(server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        async with grpc.aio.insecure_channel(
            f"127.0.0.1:{port}", options=channel_options(keepalive_milliseconds=10_000)
        ) as channel:
            stub = rerank_pb2_grpc.RerankServiceStub(channel)
            metadata = (("authorization", f"Bearer {callers.token_of('operator')}"),)
            reply = await stub.Rerank(rerank_pb2.RerankRequest(), timeout=90, metadata=metadata)
            return str(reply.model)
    except grpc.aio.AioRpcError as error:
        return error.code().name
    finally:
        await server.stop(0)


async def test_keepalive_settings_of_both_sides_agree(callers: Callers) -> None:
    # The same client against a server on the library's defaults is thrown out; that contrast
    # shows that the pings of this test are real.
    impatient = (("grpc.http2.max_ping_strikes", 1),)
    ours = _idle_call(callers, (*server_options(keepalive_milliseconds=10_000), *impatient))
    defaults = _idle_call(callers, impatient)
    assert list(await asyncio.gather(ours, defaults)) == ["survived", "UNAVAILABLE"]
