"""The manifest of a collection after some of its documents changed. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from urllib.parse import quote

from recall.ingest.v1 import documents_pb2
from services.manifest import Manifest, ManifestObject
from services.runtime.errors import invalid

_MEDIA_TYPES = {"md": "text/markdown", "markdown": "text/markdown"}


def changed(
    collection: str,
    serving: Iterable[documents_pb2.StoredSource],
    files: Mapping[str, bytes],
    removed: Iterable[str],
) -> tuple[Manifest, dict[str, bytes]]:
    """What the collection shall hold, objects by URI, and the contents of the given files by URI.

    What is neither given nor removed stays. Raises CallError INVALID_ARGUMENT for a removal of
    what is not there.
    """
    kept = {source.path: stored(source) for source in serving}
    for path in removed:
        if kept.pop(path, None) is None:
            raise invalid("remove", f"names {path!r}, which the collection does not hold")
    contents = {}
    for path, content in files.items():
        known = kept.get(path)
        source = _source(collection, path, content, known.uri if known else "")
        kept[path] = source
        contents[source.uri] = content
    objects = sorted(kept.values(), key=lambda source: source.uri)
    return Manifest(collection, tuple(objects)), contents


def stored(source: documents_pb2.StoredSource) -> ManifestObject:
    """A stored document as a manifest lists it."""
    return ManifestObject(
        uri=source.uri,
        path=source.path,
        version_id=source.version_id,
        media_type=source.media_type,
        size=source.size,
        sha256=source.sha256,
    )


def _source(collection: str, path: str, content: bytes, known_uri: str) -> ManifestObject:
    """A given file. One that replaces a file keeps its URI; an object elsewhere is left alone."""
    if not path.strip("/ ") or path.startswith("/") or ".." in path.split("/"):
        raise invalid("files", f"the path {path!r} must be relative, such as notes/owners.md")
    sha256 = hashlib.sha256(content).hexdigest()
    is_file = known_uri.startswith("file://")
    return ManifestObject(
        uri=known_uri if is_file else f"file:///{collection}/{quote(path)}",
        path=path,
        version_id=sha256,
        media_type=_MEDIA_TYPES.get(path.rpartition(".")[2].lower(), "text/plain"),
        size=len(content),
        sha256=sha256,
    )
