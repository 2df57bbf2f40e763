"""From the content of an object to the rows of its document. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime

from services.corpus import document_message_id
from services.ingest.chunk_rows import ChunkRow, text_sha256
from services.ingest.chunking import Chunk, Encoder
from services.ingest.document_chunking import chunk_id, pieces, render
from services.ingest.frontmatter import Head, Problem, split
from services.ingest.markup import storable
from services.manifest import ManifestObject


@dataclass(frozen=True)
class Piece:
    """One piece of a document's text, numbered from 1."""

    message_id: str
    ordinal: int
    text: str
    content_sha256: str


@dataclass(frozen=True)
class Document:
    """A document as it is stored. ``problems`` are its author's to mend."""

    object: ManifestObject
    collection: str
    head: Head
    pieces: tuple[Piece, ...]
    problems: tuple[Problem, ...]


def read_document(object_: ManifestObject, collection: str, content: bytes) -> Document:
    """Parse and cut one object. Bytes that are no UTF-8 are replaced and reported."""
    text = content.decode("utf-8", "replace")
    head, body = split(storable(text))
    problems = list(head.problems)
    if "\ufffd" in text and "\ufffd".encode() not in content:
        problems.append(Problem(0, "holds bytes that are no UTF-8; they were replaced"))
    cut = tuple(
        Piece(
            document_message_id(collection, object_.path, number), number, text, text_sha256(text)
        )
        for number, text in enumerate(pieces(body), 1)
    )
    if not cut:
        problems.append(Problem(0, "holds no text, so nothing of it can be found"))
    return Document(object_, collection, head, cut, tuple(problems))


def chunk_rows(document: Document, indexed_at: datetime, encoder: Encoder) -> list[ChunkRow]:
    """One chunk a piece; its thread is the document."""
    return [_chunk_row(document, piece, indexed_at, encoder) for piece in document.pieces]


def source_rows(documents: Sequence[Document], first_indexed: Mapping[str, datetime]) -> str:
    """The rows of documents as JSON. ``first_indexed`` holds an instant for each URI."""
    return json.dumps([_source_row(each, first_indexed[each.object.uri]) for each in documents])


def _chunk_row(
    document: Document, piece: Piece, indexed_at: datetime, encoder: Encoder
) -> ChunkRow:
    text = render(document.object.path, piece.text)
    return ChunkRow(
        chunk=Chunk(
            chunk_id(piece.message_id),
            "message",
            (piece.message_id,),
            text,
            len(encoder.encode(text)),
        ),
        thread_root_id=document.object.uri,
        text_sha256=text_sha256(text),
        channel_id=document.collection,
        author_ids=(),
        posted_from=indexed_at,
        posted_until=indexed_at,
    )


def _source_row(document: Document, first_indexed_at: datetime) -> dict[str, object]:
    head, object_ = document.head, asdict(document.object)
    object_["source_uri"] = object_.pop("uri")
    return {
        **object_,
        "channel_id": document.collection,
        "title": head.title,
        "document_type": head.document_type,
        "valid_from": head.valid_from.isoformat() if head.valid_from else None,
        "valid_until": head.valid_until.isoformat() if head.valid_until else None,
        "invalid_metadata": head.invalid,
        "facts": list(head.facts),
        "depends_on": [name for name, _ in head.depends_on],
        "supersedes": [name for name, _ in head.supersedes],
        "relations": _relations(head),
        "problems": [asdict(problem) for problem in document.problems],
        "first_indexed_at": first_indexed_at.isoformat(),
    }


def _relations(head: Head) -> list[dict[str, object]]:
    """Relations with their lines; what it supersedes and depends on, too."""
    declared = [
        *(("supersedes", name, 1.0, line) for name, line in head.supersedes),
        *(("depends_on", name, 1.0, line) for name, line in head.depends_on),
        *head.relations,
    ]
    return [
        {"relation": relation, "target": name, "confidence": confidence, "line": line}
        for relation, name, confidence, line in declared
    ]
