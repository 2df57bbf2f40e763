"""Rerank against the local Decisions stand-in: shows that the protocol works, nothing more.

The stand-in scores by shared words. A figure of its order says nothing about a decision model.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from evals.asking import EvaluationError, search
from evals.datasets import Dataset, Question
from evals.figures import EVIDENCE_SIZE, Found
from recall.rerank.v1 import rerank_pb2, rerank_pb2_grpc
from services.cli.connection import CALLER, Stack
from services.runtime.callers import FILE_NAME, Callers
from services.runtime.client import Peer
from services.runtime.config import Settings
from tests.fakes.decisions_server import DecisionsServer

PORT_OFFSET = 9
READY_SECONDS = 30.0
RERANK_SECONDS = 10.0


@asynccontextmanager
async def stand_in_rerank(
    environ: Mapping[str, str],
) -> AsyncIterator[rerank_pb2_grpc.RerankServiceAsyncStub]:
    """A second rerank process whose decision model is the stand-in."""
    settings = Settings(environ)
    port = settings.port("gateway_http") + PORT_OFFSET
    callers = Callers(settings.home() / FILE_NAME)
    settings.done()
    with DecisionsServer() as decisions, _process(environ, port, decisions.base_url):
        peer = Peer(f"127.0.0.1:{port}", lambda: callers.token_of(CALLER))
        try:
            yield rerank_pb2_grpc.RerankServiceStub(peer.channel())
        finally:
            await peer.close()


async def reranked_all(
    stack: Stack,
    rerank: rerank_pb2_grpc.RerankServiceAsyncStub,
    dataset: Dataset,
    questions: Iterable[Question],
) -> AsyncIterator[Found]:
    """The evidence of each question in the stand-in's order.

    Raises EvaluationError when its tier was not the one that answered.
    """
    for question in questions:
        hits = (await search(stack, dataset, question)).hits[:EVIDENCE_SIZE]
        request = rerank_pb2.RerankRequest(
            question=question.text, messages=[hit.message for hit in hits]
        )
        reply = await rerank.Rerank(request, timeout=RERANK_SECONDS)
        if hits and reply.tier != rerank_pb2.TIER_JEV:
            causes = ", ".join(failed.cause for failed in reply.failed_tiers)
            raise EvaluationError(f"{question.question_id}: the stand-in did not answer: {causes}")
        yield Found(question, tuple(ranked.message_id for ranked in reply.ranking), (), ())


@contextmanager
def _process(environ: Mapping[str, str], port: int, decisions_url: str) -> Iterator[None]:
    own = {
        "RECALL_RERANK_PORT": str(port),
        "RECALL_DECISIONS_URL": decisions_url,
        "OPEN_ROUTER": "stand-in",
    }
    log = Path(Settings(environ).home()) / "logs" / "rerank-stand-in.log"
    log.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with log.open("ab") as output:
        started = subprocess.Popen(
            (sys.executable, "-m", "services.rerank"),
            env={**environ, **own},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        _wait_until_serving(started, port, log)
        yield
    finally:
        started.terminate()
        started.wait()


def _wait_until_serving(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + READY_SECONDS
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        health = health_pb2_grpc.HealthStub(channel)
        while process.poll() is None and time.monotonic() < deadline:
            try:
                health.Check(health_pb2.HealthCheckRequest(), timeout=1.0)
                return
            except grpc.RpcError:
                time.sleep(0.1)
    raise EvaluationError(
        f"The rerank process for the stand-in did not start; {os.fspath(log)} says why."
    )
