"""A collection of documents as a build leaves it, written with plain SQL as the owner."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from services.embedding.local import IDENTITY
from services.manifest import Manifest, ManifestObject, canonical, digest
from tests.integration.ingest_fixtures import Rows


def seal_rows(rows: Rows, collection: str, documents: Mapping[str, str]) -> str:
    """A sealed generation of workspace W, still building, each document one chunk; its id."""
    rows.execute(
        "INSERT INTO workspaces (workspace_id, source) VALUES ('W', 'document') "
        "ON CONFLICT DO NOTHING"
    )
    rows.execute(
        "INSERT INTO channels (workspace_id, channel_id, name, kind) "
        "VALUES ('W', %s, %s, 'public') ON CONFLICT DO NOTHING",
        *(collection, collection),
    )
    rows.execute(
        "INSERT INTO embedders VALUES (%s, 'local', 'local', 'm', 'r', 384) ON CONFLICT DO NOTHING",
        IDENTITY.fingerprint,
    )
    number = rows.one("SELECT count(*) FROM generations")
    generation_id = f"d-{number}"
    rows.execute(
        "INSERT INTO generations (workspace_id, generation_id, source, collection, kind, "
        "chunker_version, embedder_fingerprint, width, manifest_digest, corpus_fingerprint) "
        "VALUES ('W', %s, 'document', %s, 'sealed', '1', %s, 384, %s, %s)",
        *(generation_id, collection, IDENTITY.fingerprint),
        *([_manifest_digest(collection, documents)] * 2),
    )
    for ordinal, (path, text) in enumerate(documents.items()):
        _document(rows, (generation_id, collection, f"c{ordinal}"), path, text)
    return generation_id


def _manifest_digest(collection: str, documents: Mapping[str, str]) -> str:
    objects = []
    for path, text in documents.items():
        sha256 = hashlib.sha256(text.encode()).hexdigest()
        uri, size = f"file:///{collection}/{path}", len(text.encode())
        objects.append(ManifestObject(uri, path, sha256, "text/markdown", size, sha256))
    return digest(canonical(Manifest(collection, tuple(objects))))


def _document(rows: Rows, place: tuple[str, str, str], path: str, text: str) -> None:
    generation_id, collection, chunk_id = place
    sha256 = hashlib.sha256(text.encode()).hexdigest()
    given = {
        **{"g": generation_id, "c": collection, "id": chunk_id, "path": path, "text": text},
        **{"uri": f"file:///{collection}/{path}", "sha": sha256, "size": len(text.encode())},
        "m": f"document:{collection}:{path}#0",
    }
    for statement in (
        "INSERT INTO sources (workspace_id, generation_id, source_uri, channel_id, path, "
        "version_id, media_type, size, sha256, first_indexed_at) "
        "VALUES ('W', %(g)s, %(uri)s, %(c)s, %(path)s, %(sha)s, 'text/markdown', %(size)s, "
        "%(sha)s, now())",
        "INSERT INTO source_pieces (workspace_id, generation_id, message_id, source_uri, ordinal, "
        "channel_id, text, content_sha256) "
        "VALUES ('W', %(g)s, %(m)s, %(uri)s, 0, %(c)s, %(text)s, %(sha)s)",
        "INSERT INTO chunks (workspace_id, generation_id, chunk_id, channel_id, thread_root_id, "
        "kind, text, text_sha256, token_count) "
        "VALUES ('W', %(g)s, %(id)s, %(c)s, %(m)s, 'message', %(text)s, %(sha)s, 1)",
        "INSERT INTO chunk_messages VALUES ('W', %(g)s, %(id)s, %(m)s, 0)",
        "INSERT INTO chunk_terms VALUES ('W', %(g)s, %(id)s, %(c)s, '{}', now(), now(), "
        "to_tsvector('simple', %(text)s))",
        "INSERT INTO vectors_384 VALUES ('W', %(g)s, %(id)s, %(c)s, '{}', now(), now(), "
        "array_fill(0.5::real, ARRAY[384])::vector)",
    ):
        rows.connection.execute(statement.encode(), given)
