"""BuildDocuments: a sealed generation of exactly the objects of a manifest.

What an earlier generation with the same pipeline holds unchanged is carried forward by the
database; only the rest is asked for, read and cut. The generation is not served until it was
validated and promoted, so a build that breaks leaves what serves as it is.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

import grpc

from recall.error.v1 import error_pb2
from services.corpus import Source
from services.ingest.audit import AuditEvent, record_audit
from services.ingest.carry_documents import carry_forward, choose_parent
from services.ingest.chunk_store import cached_vectors, insert_chunks
from services.ingest.clear_generation import clear_generation
from services.ingest.document_chunking import DOCUMENT_CHUNKER_VERSION
from services.ingest.document_contents import Content, batches
from services.ingest.document_edges import write_edges
from services.ingest.document_rows import Document, chunk_rows, read_document, source_rows
from services.ingest.fail_generation import fail_generation
from services.ingest.forget_sources import forget_sources
from services.ingest.generations import (
    Generation,
    NewGeneration,
    create_generation,
    read_generations,
    refresh_statistics,
)
from services.ingest.only_build import only_build
from services.ingest.queue import enqueue_embedding
from services.ingest.resources import Resources
from services.ingest.to_its_end import to_its_end
from services.ingest.workspaces import changing, create_workspace
from services.manifest import Manifest, canonical, digest
from services.runtime import db, sql
from services.runtime.errors import CallError, invalid

_STATEMENTS = sql.load("services.ingest", "documents.sql")


@dataclass(frozen=True)
class Wanted:
    """URIs whose content is asked for."""

    uris: tuple[str, ...]


@dataclass(frozen=True)
class Counts:
    """Totals of a build."""

    sources: int
    carried: int
    read: int
    chunks: int = 0
    without_vector: int = 0


@dataclass(frozen=True)
class Fault:
    """Something in a document that its author should mend; line 0 is the whole document."""

    uri: str
    line: int
    message: str


@dataclass(frozen=True)
class Report:
    """The end of a build."""

    generation_id: str
    counts: Counts
    faults: tuple[Fault, ...]


Event = Wanted | Counts | Report


@dataclass
class _Build:
    resources: Resources
    workspace_id: str
    manifest: Manifest
    generation: Generation
    parent: str
    first_indexed: dict[str, datetime]
    erased: frozenset[str]
    faults: list[Fault] = field(default_factory=list)

    @property
    def key(self) -> dict[str, object]:
        """Parameters of every statement of a build."""
        return {
            **self.generation.key,
            "collection": self.manifest.collection,
            "parent": self.parent,
        }


@dataclass(frozen=True)
class Header:
    """What opens a build."""

    workspace_id: str
    manifest: Manifest
    embedder: str = ""
    actor: str = ""


async def build_documents(
    resources: Resources, header: Header, contents: AsyncIterator[Content]
) -> AsyncGenerator[Event, None]:
    """What is wanted, progress, and the report; ``contents`` brings what is wanted, in any order.

    Raises CallError CONCURRENT_CHANGE while somebody else builds the collection, INVALID_ARGUMENT
    for content that is not what the manifest says, WORKSPACE_CONFLICT, EMBEDDER_UNAVAILABLE. A
    build that breaks is failed with its reason.
    """
    async with only_build(resources.pool, header.workspace_id, header.manifest.collection):
        build = await _begin(resources, header)
        try:
            async for event in _fill(build, contents):
                yield event
        except BaseException as error:
            await to_its_end(_give_up(build, header.actor, error))
            raise


async def _fill(build: _Build, contents: AsyncIterator[Content]) -> AsyncGenerator[Event, None]:
    objects = {each.uri: each for each in build.manifest.objects if each.uri not in build.erased}
    build.faults += [
        Fault(uri, 0, "was erased and is not taken again")
        for uri in sorted(build.erased)
        if any(each.uri == uri for each in build.manifest.objects)
    ]
    carried = await carry_forward(build.resources.pool, build.key, build.generation.width, objects)
    wanted = {uri: each for uri, each in objects.items() if uri not in carried}
    yield Wanted(tuple(wanted))
    read = 0
    async for batch in batches(contents, wanted):
        await _write(
            build,
            [read_document(each, build.manifest.collection, content) for each, content in batch],
        )
        read += len(batch)
        yield Counts(len(objects), len(carried), read)
    if read < len(wanted):
        raise invalid("object", f"{len(wanted) - read} objects that were asked for never came")
    yield await _finish(build, len(objects), len(carried), read)


async def _begin(resources: Resources, header: Header) -> _Build:
    manifest = header.manifest
    async with changing(resources.pool, header.workspace_id) as connection:
        workspace = await create_workspace(connection, header.workspace_id, Source.DOCUMENT, "")
        if workspace.source is not Source.DOCUMENT:
            raise _conflict(header.workspace_id, workspace.source)
        key = {"workspace_id": header.workspace_id, "collection": manifest.collection}
        await connection.execute(_STATEMENTS["save_collection"], key)
        existing = [
            each
            for each in await read_generations(connection, header.workspace_id)
            if each.collection == manifest.collection and each.is_sealed
        ]
        identity = resources.embedders.by_name(_embedder(resources, header, existing)).identity
        erased = await _erased(connection, key)
        taken = tuple(each for each in manifest.objects if each.uri not in erased)
        manifest_digest = digest(canonical(Manifest(manifest.collection, taken)))
        new = NewGeneration(
            header.workspace_id,
            resources.new_generation_id(),
            Source.DOCUMENT,
            identity,
            chunker_version=DOCUMENT_CHUNKER_VERSION,
            collection=manifest.collection,
            is_sealed=True,
            parent_generation_id=next(
                (g.generation_id for g in existing if g.state == "active"), ""
            ),
            manifest_digest=manifest_digest,
        )
        await create_generation(connection, new)
        for left in existing:
            if left.state == "building" and left.validated_at is None:
                await _abandon(connection, left, header.actor)
        event = AuditEvent("generation_begun", header.actor, new.generation_id)
        await record_audit(connection, header.workspace_id, event)
        generations = await read_generations(connection, header.workspace_id)
        generation = next(g for g in generations if g.generation_id == new.generation_id)
        first = await db.fetch_all(connection, _STATEMENTS["first_indexed"], key)
    now = datetime.now(UTC)
    known: dict[str, datetime] = dict(first)
    return _Build(
        resources=resources,
        workspace_id=header.workspace_id,
        manifest=manifest,
        generation=generation,
        parent=choose_parent(existing, generation),
        first_indexed={each.uri: known.get(each.uri, now) for each in manifest.objects},
        erased=erased,
    )


async def _erased(connection: db.Connection, key: dict[str, str]) -> frozenset[str]:
    rows = await db.fetch_all(connection, _STATEMENTS["erased_uris"], key)
    return frozenset(row[0] for row in rows)


def _embedder(resources: Resources, header: Header, existing: Sequence[Generation]) -> str:
    """As asked, else as the collection has it, else the default."""
    serving = next((each.embedder for each in existing if each.state == "active"), "")
    return header.embedder or serving or resources.embedders.default_name()


async def _abandon(connection: db.Connection, left: Generation, actor: str) -> None:
    """A build that its process did not live to end; the collection's lock is ours now."""
    counts = await db.fetch_one(connection, _STATEMENTS.for_width("counts", left.width), left.key)
    if counts is None or counts[2] == 0:
        reason = "its build ended before it was whole"
        await fail_generation(connection, left.workspace_id, left.generation_id, reason, actor)


async def _write(build: _Build, documents: Sequence[Document]) -> None:
    """Documents with their pieces, chunks and known vectors, in one transaction."""
    rows = [
        row
        for each in documents
        for row in chunk_rows(each, build.first_indexed[each.object.uri], build.resources.encoder)
    ]
    pieces = [(each.object.uri, piece) for each in documents for piece in each.pieces]
    async with db.writing(build.resources.pool, build.workspace_id) as connection:
        given = {**build.key, "rows": source_rows(documents, build.first_indexed)}
        await connection.execute(_STATEMENTS["insert_sources"], given)
        await connection.execute(
            _STATEMENTS["insert_pieces"],
            {
                **build.key,
                "message_ids": [piece.message_id for _, piece in pieces],
                "source_uris": [uri for uri, _ in pieces],
                "ordinals": [piece.ordinal for _, piece in pieces],
                "texts": [piece.text for _, piece in pieces],
                "content_sha256s": [piece.content_sha256 for _, piece in pieces],
            },
        )
        if rows:
            vectors = await cached_vectors(connection, build.generation, rows)
            await insert_chunks(connection, build.generation, rows, vectors)


async def _finish(build: _Build, sources: int, carried: int, read: int) -> Report:
    """Edges, late erasures, and the request for missing vectors."""
    async with db.writing(build.resources.pool, build.workspace_id) as connection:
        await forget_sources(connection, build.workspace_id, build.manifest.collection)
        problems = await write_edges(connection, build.key)
        told = await db.fetch_all(connection, _STATEMENTS["problems_of_sources"], build.key)
        build.faults += [Fault(*problem) for problem in (*problems, *told)]
        statement = _STATEMENTS.for_width("counts", build.generation.width)
        row = await db.fetch_one(connection, statement, build.key) or (0, 0, 0)
        if row[2]:
            await enqueue_embedding(connection, build.workspace_id, build.generation.generation_id)
    if row[1]:
        await refresh_statistics(build.resources.pool, build.workspace_id)
    counts = Counts(sources, carried, read, chunks=row[1], without_vector=row[2])
    faults = tuple(sorted(build.faults, key=lambda fault: (fault.uri, fault.line, fault.message)))
    return Report(build.generation.generation_id, counts, faults)


async def _give_up(build: _Build, actor: str, error: BaseException) -> None:
    """Say why, and leave nothing of it."""
    reason = (
        error.message
        if isinstance(error, CallError)
        else f"the build broke ({type(error).__name__})"
    )
    async with db.writing(build.resources.pool, build.workspace_id) as connection:
        await fail_generation(
            connection, build.workspace_id, build.generation.generation_id, reason, actor
        )
    await clear_generation(build.resources, build.workspace_id, build.generation.generation_id)


def _conflict(workspace_id: str, source: Source) -> CallError:
    return CallError(
        grpc.StatusCode.FAILED_PRECONDITION,
        error_pb2.ERROR_REASON_WORKSPACE_CONFLICT,
        f"Workspace {workspace_id!r} holds {source.value} messages. Build documents into a "
        "workspace of their own: name another with --workspace.",
    )
