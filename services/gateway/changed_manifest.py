"""The manifest of a collection after some of its documents changed. Pure; docs/documents.md has the
format."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from urllib.parse import quote

from recall.ingest.v1 import documents_pb2
from services.runtime.errors import invalid

SCHEMA_VERSION = 1
_MEDIA_TYPES = {"md": "text/markdown", "markdown": "text/markdown"}


def changed(
    collection: str,
    serving: Iterable[documents_pb2.StoredSource],
    files: Mapping[str, bytes],
    removed: Iterable[str],
) -> tuple[list[documents_pb2.StoredSource], dict[str, bytes]]:
    """The documents that the collection shall hold, and the contents of the given files by URI.

    What is neither given nor removed stays. Raises CallError INVALID_ARGUMENT for a removal of
    what is not there.
    """
    kept = {source.path: source for source in serving}
    for path in removed:
        if kept.pop(path, None) is None:
            raise invalid("remove", f"names {path!r}, which the collection does not hold")
    contents = {}
    for path, content in files.items():
        known = kept.get(path)
        source = _source(collection, path, content, known.uri if known else "")
        kept[path] = source
        contents[source.uri] = content
    return sorted(kept.values(), key=lambda source: source.uri), contents


def canonical(collection: str, sources: Iterable[documents_pb2.StoredSource]) -> bytes:
    """The manifest as its digest sees it: keys sorted, no white space, UTF-8, objects by URI."""
    objects = [
        {
            "uri": source.uri,
            "path": source.path,
            "version_id": source.version_id,
            "media_type": source.media_type,
            "size": source.size,
            "sha256": source.sha256,
        }
        for source in sources
    ]
    stored = {"schema_version": SCHEMA_VERSION, "collection": collection, "objects": objects}
    text = json.dumps(stored, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return text.encode()


def digest(canonical_json: bytes) -> str:
    """SHA-256 (hex) of a canonical manifest."""
    return hashlib.sha256(canonical_json).hexdigest()


def _source(
    collection: str, path: str, content: bytes, known_uri: str
) -> documents_pb2.StoredSource:
    """A given file. One that replaces a file keeps its URI; an object elsewhere is left alone."""
    if not path.strip("/ ") or path.startswith("/") or ".." in path.split("/"):
        raise invalid("files", f"the path {path!r} must be relative, such as notes/owners.md")
    sha256 = hashlib.sha256(content).hexdigest()
    is_file = known_uri.startswith("file://")
    return documents_pb2.StoredSource(
        uri=known_uri if is_file else f"file:///{collection}/{quote(path)}",
        path=path,
        version_id=sha256,
        media_type=_MEDIA_TYPES.get(path.rpartition(".")[2].lower(), "text/plain"),
        size=len(content),
        sha256=sha256,
    )
