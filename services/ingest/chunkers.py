"""The chunkers that this version carries: a generation keeps the one it was begun with."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import grpc

from recall.error.v1 import error_pb2
from services.corpus import Message, Source
from services.ingest.chunking import CHUNKER_VERSION, Chunk, Encoder, chunk_thread
from services.runtime.errors import CallError

Chunker = Callable[[Sequence[Message], Source, Encoder], list[Chunk]]
# By version, the newest last.
Chunkers = Mapping[str, Chunker]

CHUNKERS: Chunkers = {CHUNKER_VERSION: chunk_thread}


def newest(chunkers: Chunkers) -> str:
    """The version that a new generation is begun with."""
    return list(chunkers)[-1]


def chunker_of(chunkers: Chunkers, version: str) -> Chunker:
    """A generation's chunker. Raises CallError FAILED_PRECONDITION when it is not carried here."""
    if version not in chunkers:
        raise CallError(
            grpc.StatusCode.FAILED_PRECONDITION,
            error_pb2.ERROR_REASON_GENERATION_NOT_READY,
            f"A generation of this workspace was begun with chunker {version}, which this version "
            "does not carry. Run the version that made it, build a generation with "
            f"chunker {newest(chunkers)} there, and promote it.",
        )
    return chunkers[version]
