"""The stages as the gateway reaches them. Every failed call is a CallError that names its stage."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from typing import Protocol, TypeVar

import grpc
import structlog
from grpc_health.v1 import health_pb2, health_pb2_grpc

from recall.answer.v1 import answer_pb2_grpc
from recall.error.v1 import error_pb2
from recall.ingest.v1 import (
    generations_pb2_grpc,
    ingest_pb2_grpc,
    jobs_pb2_grpc,
    ledger_pb2_grpc,
    slack_pb2_grpc,
)
from recall.rerank.v1 import rerank_pb2_grpc
from recall.retrieve.v1 import retrieve_pb2_grpc
from services.gateway.config import CALLER_NAME
from services.runtime.callers import Callers
from services.runtime.client import Peer
from services.runtime.errors import CallError, from_rpc_error, unavailable

STAGES = ("ingest", "retrieve", "rerank", "answer")
# What a stage answers when it does not accept this process's token.
_OUR_TOKEN_REFUSED = (grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED)
# An error without a reason of ours was made by the connection, not by the stage.
_SAID_BY_THE_CONNECTION = (
    error_pb2.ERROR_REASON_UNSPECIFIED,
    error_pb2.ERROR_REASON_STAGE_UNAVAILABLE,
)

Request = TypeVar("Request", contravariant=True)
Reply = TypeVar("Reply", covariant=True)

log = structlog.get_logger("stages")


class Method(Protocol[Request, Reply]):
    """One unary RPC of a stub."""

    def __call__(self, request: Request, /, *, timeout: float) -> Awaitable[Reply]: ...


@dataclass(frozen=True)
class Stages:
    """The four stages that the gateway calls."""

    ingest: Peer
    retrieve: Peer
    rerank: Peer
    answer: Peer

    @property
    def retriever(self) -> retrieve_pb2_grpc.RetrieveServiceAsyncStub:
        """RetrieveService."""
        return retrieve_pb2_grpc.RetrieveServiceStub(self.retrieve.channel())

    @property
    def reranker(self) -> rerank_pb2_grpc.RerankServiceAsyncStub:
        """RerankService."""
        return rerank_pb2_grpc.RerankServiceStub(self.rerank.channel())

    @property
    def writer(self) -> answer_pb2_grpc.AnswerServiceAsyncStub:
        """AnswerService."""
        return answer_pb2_grpc.AnswerServiceStub(self.answer.channel())

    @property
    def directory(self) -> ingest_pb2_grpc.DirectoryServiceAsyncStub:
        """DirectoryService of ingest."""
        return ingest_pb2_grpc.DirectoryServiceStub(self.ingest.channel())

    @property
    def ingester(self) -> ingest_pb2_grpc.IngestServiceAsyncStub:
        """IngestService."""
        return ingest_pb2_grpc.IngestServiceStub(self.ingest.channel())

    @property
    def generations(self) -> generations_pb2_grpc.GenerationServiceAsyncStub:
        """GenerationService of ingest."""
        return generations_pb2_grpc.GenerationServiceStub(self.ingest.channel())

    @property
    def ledger(self) -> ledger_pb2_grpc.LedgerServiceAsyncStub:
        """LedgerService of ingest."""
        return ledger_pb2_grpc.LedgerServiceStub(self.ingest.channel())

    @property
    def jobs(self) -> jobs_pb2_grpc.JobServiceAsyncStub:
        """JobService of ingest."""
        return jobs_pb2_grpc.JobServiceStub(self.ingest.channel())

    @property
    def installations(self) -> slack_pb2_grpc.InstallationServiceAsyncStub:
        """InstallationService of ingest."""
        return slack_pb2_grpc.InstallationServiceStub(self.ingest.channel())

    @property
    def deliveries(self) -> slack_pb2_grpc.DeliveryServiceAsyncStub:
        """DeliveryService of ingest."""
        return slack_pb2_grpc.DeliveryServiceStub(self.ingest.channel())

    @property
    def feedback(self) -> slack_pb2_grpc.FeedbackServiceAsyncStub:
        """FeedbackService of ingest."""
        return slack_pb2_grpc.FeedbackServiceStub(self.ingest.channel())

    @property
    def settings(self) -> slack_pb2_grpc.SettingsServiceAsyncStub:
        """SettingsService of ingest."""
        return slack_pb2_grpc.SettingsServiceStub(self.ingest.channel())

    def peer(self, stage: str) -> Peer:
        """The peer of one of ``STAGES``."""
        peers = {
            "ingest": self.ingest,
            "retrieve": self.retrieve,
            "rerank": self.rerank,
            "answer": self.answer,
        }
        return peers[stage]

    async def is_serving(self, stage: str, seconds: float) -> bool:
        """Ask a stage's health. Raises CallError when it does not answer in ``seconds``."""
        health = health_pb2_grpc.HealthStub(self.peer(stage).channel())
        reply = await reach(stage, health.Check, health_pb2.HealthCheckRequest(), seconds)
        return bool(reply.status == health_pb2.HealthCheckResponse.SERVING)

    async def close(self) -> None:
        """Close this process's channels."""
        for stage in STAGES:
            await self.peer(stage).close()


def connect(targets: Mapping[str, str], callers: Callers) -> Stages:
    """The stages, called with the gateway's own token."""

    def token() -> str:
        return callers.token_of(CALLER_NAME)

    return Stages(**{name: Peer(target, token) for name, target in targets.items()})


async def reach(
    stage: str, method: Method[Request, Reply], request: Request, seconds: float
) -> Reply:
    """Call one RPC of ``stage`` with ``seconds`` to answer. Raises CallError.

    What the stage itself refuses (a malformed filter, a missing generation, a database that is
    away) passes as it is. A stage that is gone, or slower than ``seconds``, is UNAVAILABLE.
    """
    try:
        return await method(request, timeout=seconds)
    except grpc.RpcError as error:
        failure = stage_error(stage, from_rpc_error(error), seconds)
        log.warning("stage failed", stage=stage, code=error.code().name, detail=failure.message)
        raise failure from None


def stage_error(stage: str, error: CallError, seconds: float) -> CallError:
    """What the gateway's caller is told about a stage's failed call."""
    if error.code is grpc.StatusCode.DEADLINE_EXCEEDED:
        return unavailable(
            error_pb2.ERROR_REASON_STAGE_UNAVAILABLE,
            f"The {stage} stage did not answer within {seconds:.1f} seconds. Try again.",
        )
    if error.code in _OUR_TOKEN_REFUSED:
        return CallError(
            grpc.StatusCode.FAILED_PRECONDITION,
            error.reason,
            f"The {stage} stage does not accept the gateway's token. All processes must use the "
            "same RECALL_HOME/callers.json.",
        )
    if error.reason == error_pb2.ERROR_REASON_INTERNAL:
        return CallError(
            error.code,
            error.reason,
            f"The {stage} stage failed. {error.message}",
            metadata=error.metadata,
        )
    if error.reason not in _SAID_BY_THE_CONNECTION:
        return error
    return unavailable(
        error_pb2.ERROR_REASON_STAGE_UNAVAILABLE,
        f"The {stage} stage can not be reached ({error.code.name}). Try again in a few seconds; "
        "`recall status` shows the stages.",
    )
