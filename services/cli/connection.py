"""How the command reaches the running stack, and what it says when it can not."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import grpc

from recall.gateway.v1 import admin_pb2_grpc, gateway_pb2_grpc
from recall.ingest.v1 import (
    generations_pb2_grpc,
    ingest_pb2_grpc,
    jobs_pb2_grpc,
    slack_pb2_grpc,
)
from services.runtime.callers import FILE_NAME, Callers, CallersFileError
from services.runtime.client import Peer
from services.runtime.config import Settings, with_remembered_port_base
from services.runtime.errors import CallError

CALLER = "operator"
# Exit statuses; the first three are part of the command's contract.
OK, UNAVAILABLE, BAD_USAGE, NOT_ANSWERED, SOURCES_ONLY = 0, 1, 2, 3, 4

# What grpc says of a stream that broke while a request was being sent.
BROKE_WHILE_SENDING = "Internal error from Core"


class UsageError(Exception):
    """The command line can not be used; one line that names the argument and the remedy."""


@dataclass(frozen=True)
class Stack:
    """Stubs of the running stack."""

    home: Path
    gateway: gateway_pb2_grpc.RecallServiceAsyncStub
    admin: admin_pb2_grpc.AdminServiceAsyncStub
    ingest: ingest_pb2_grpc.IngestServiceAsyncStub
    generations: generations_pb2_grpc.GenerationServiceAsyncStub
    directory: ingest_pb2_grpc.DirectoryServiceAsyncStub
    jobs: jobs_pb2_grpc.JobServiceAsyncStub
    settings: slack_pb2_grpc.SettingsServiceAsyncStub


@asynccontextmanager
async def connect(environ: Mapping[str, str] = os.environ) -> AsyncIterator[Stack]:
    """Stubs over one connection a process each; nothing is sent yet."""
    settings = Settings(with_remembered_port_base(environ))
    home = settings.home()
    targets = [settings.target("gateway"), settings.target("ingest")]
    settings.done()
    callers = Callers(home / FILE_NAME)
    peers = [Peer(target, lambda: callers.token_of(CALLER)) for target in targets]
    try:
        gateway, ingest = (peer.channel() for peer in peers)
        yield Stack(
            home,
            gateway_pb2_grpc.RecallServiceStub(gateway),
            admin_pb2_grpc.AdminServiceStub(gateway),
            ingest_pb2_grpc.IngestServiceStub(ingest),
            generations_pb2_grpc.GenerationServiceStub(ingest),
            ingest_pb2_grpc.DirectoryServiceStub(ingest),
            jobs_pb2_grpc.JobServiceStub(ingest),
            slack_pb2_grpc.SettingsServiceStub(ingest),
        )
    finally:
        for peer in peers:
            await peer.close()


def has_broken_off(error: CallError) -> bool:
    """Whether a connection broke that stood before. A refusal of a stage says when to come back."""
    if error.message == BROKE_WHILE_SENDING:
        return True
    is_refusal = error.retry_after_seconds is not None
    away = error.code == grpc.StatusCode.UNAVAILABLE and not is_refusal
    return away and not _nobody_listens(error.message)


def operator_token(environ: Mapping[str, str] = os.environ) -> str:
    """The operator's token, for grpcurl and friends. Raises CallersFileError."""
    settings = Settings(environ)
    home = settings.home()
    settings.done()
    return Callers(home / FILE_NAME).token_of(CALLER)


def explain_failure(error: CallError) -> tuple[str, int]:
    """One line for a person and the exit status of a failed call."""
    if error.code == grpc.StatusCode.UNAVAILABLE and _nobody_listens(error.message):
        return "Recall is not running here. Start it with `make up` (or `make demo`).", UNAVAILABLE
    if error.code in (
        grpc.StatusCode.INVALID_ARGUMENT,
        grpc.StatusCode.NOT_FOUND,
        grpc.StatusCode.FAILED_PRECONDITION,
        grpc.StatusCode.OUT_OF_RANGE,
    ):
        return error.message, BAD_USAGE
    return error.message, UNAVAILABLE


def explain_callers_fault(error: CallersFileError) -> str:
    """A missing callers file nearly always means that no stack was ever started here."""
    return f"{error} Start Recall with `make up`, or point RECALL_HOME at the running one."


def _nobody_listens(details: str) -> bool:
    return "failed to connect to all addresses" in details or "Connection refused" in details
