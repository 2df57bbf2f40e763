"""The source manifest of a collection: what exactly goes into a generation. Pure.

Canonical JSON (keys sorted, no white space, UTF-8): {"schema_version": 1, "collection": …,
"objects": [{"uri", "path", "version_id", "media_type", "size", "sha256"}, …]}, objects by URI. Its
SHA-256 is the digest that names the corpus.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass

from services.runtime.errors import invalid

SCHEMA_VERSION = 1
MAX_OBJECTS = 200_000
MAX_OBJECT_BYTES = 16 * 1024 * 1024
_SHA256 = re.compile(r"[0-9a-f]{64}")
_URI = re.compile(r"(file|s3)://[^?#]+")
_COLLECTION = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")


@dataclass(frozen=True)
class ManifestObject:
    """One object. ``path`` is how people name it inside the collection; ``size`` is in bytes."""

    uri: str
    path: str
    version_id: str
    media_type: str
    size: int
    sha256: str


@dataclass(frozen=True)
class Manifest:
    """The objects of one collection, by URI."""

    collection: str
    objects: tuple[ManifestObject, ...]


def canonical(manifest: Manifest) -> bytes:
    """The manifest as its digest sees it."""
    stored = {
        "schema_version": SCHEMA_VERSION,
        "collection": manifest.collection,
        "objects": [asdict(each) for each in sorted(manifest.objects, key=lambda o: o.uri)],
    }
    text = json.dumps(stored, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return text.encode()


def digest(canonical_json: bytes) -> str:
    """SHA-256 (hex) of a canonical manifest."""
    return hashlib.sha256(canonical_json).hexdigest()


def parse(stored: bytes) -> Manifest:
    """A manifest of its JSON. Raises CallError INVALID_ARGUMENT that names what is wrong."""
    try:
        document = json.loads(stored)
        objects = [_object(each) for each in document["objects"]]
        manifest = Manifest(_text(document["collection"]), tuple(objects))
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise invalid(
            "manifest_json", f"is no manifest ({type(error).__name__}: {error})"
        ) from None
    if document.get("schema_version") != SCHEMA_VERSION:
        raise invalid("manifest_json", f"must have schema_version {SCHEMA_VERSION}")
    check(manifest)
    return manifest


def check(manifest: Manifest) -> None:
    """Raise CallError INVALID_ARGUMENT unless the manifest can be built."""
    if not _COLLECTION.fullmatch(manifest.collection):
        raise invalid(
            "collection",
            f"{manifest.collection!r}: must be 1 to 63 lowercase letters, digits, dots, dashes or "
            "underscores, and begin with a letter or digit",
        )
    if len(manifest.objects) > MAX_OBJECTS:
        raise invalid(
            "manifest_json", f"lists {len(manifest.objects)} objects; at most {MAX_OBJECTS}"
        )
    for each in manifest.objects:
        _check_object(each)
    for name in ("uri", "path"):
        twice = _twice(getattr(each, name) for each in manifest.objects)
        if twice:
            raise invalid("manifest_json", f"lists the {name} {twice[0]!r} twice")


def erased_fingerprint(manifest_digest: str, erased: Sequence[str]) -> str:
    """What names a corpus after erasures: of no erasure the digest itself."""
    if not erased:
        return manifest_digest
    return hashlib.sha256("\n".join((manifest_digest, *sorted(erased))).encode()).hexdigest()


def _object(stored: dict[str, object]) -> ManifestObject:
    given = ManifestObject(**stored)  # type: ignore[arg-type]
    if type(given.size) is not int:
        raise TypeError(f"size {given.size!r} is no whole number")
    for name in ("uri", "path", "version_id", "media_type", "sha256"):
        _text(getattr(given, name))
    return given


def _text(value: object) -> str:
    if not isinstance(value, str) or not value.isprintable():
        raise TypeError(f"{value!r} is no line of text")
    return value


def _check_object(each: ManifestObject) -> None:
    if not _URI.fullmatch(each.uri) or not each.uri.isprintable():
        raise invalid(
            "manifest_json",
            f"has the URI {each.uri!r}; it must be file:// or s3://, without query or fragment",
        )
    if not each.path or not each.path.isprintable():
        raise invalid("manifest_json", f"has no usable path for {each.uri}")
    if not _SHA256.fullmatch(each.sha256):
        raise invalid("manifest_json", f"has no SHA-256 for {each.uri}")
    if not 0 <= each.size <= MAX_OBJECT_BYTES:
        raise invalid(
            "manifest_json", f"{each.uri} has {each.size} bytes; at most {MAX_OBJECT_BYTES}"
        )
    if each.uri.startswith("file://") and each.version_id != each.sha256:
        raise invalid("manifest_json", f"the version of {each.uri} must be its SHA-256")


def _twice(values: Iterable[str]) -> list[str]:
    return [value for value, count in Counter(values).items() if count > 1]
