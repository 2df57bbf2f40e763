"""Where documents come from: a folder, a zip file, an S3 prefix, a manifest of such objects.

Each object is read when it is asked for.
"""

from __future__ import annotations

import hashlib
import mimetypes
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote

import boto3
import botocore.exceptions

from services.cli.connection import UsageError
from services.manifest import MAX_OBJECT_BYTES, Manifest, ManifestObject, parse

SUFFIXES = (".md", ".markdown", ".txt", ".rst")
_S3_ERRORS = (botocore.exceptions.BotoCoreError, botocore.exceptions.ClientError)
_ZIP_ERRORS = (zipfile.BadZipFile, RuntimeError, NotImplementedError, OSError)


@dataclass(frozen=True)
class Found:
    """The manifest of what was found, how to read an object again by its URI, and what was left
    out, one sentence each. Reading raises UsageError."""

    manifest: Manifest
    read: Callable[[str], bytes]
    left_out: tuple[str, ...]


def find_documents(where: str, collection: str) -> Found:
    """Everything readable at a place. Raises UsageError that names it, CallError for a manifest
    that can not be built."""
    if where.startswith("s3://"):
        return _from_s3(where, collection)
    path = Path(where)
    if path.is_dir():
        return _from_folder(path, collection)
    if path.is_file() and zipfile.is_zipfile(path):
        return _from_zip(path, collection)
    if path.is_file() and path.suffix == ".json":
        return _from_manifest(path, collection)
    raise UsageError(f"{where}: is no folder, no zip file, no .json manifest and no s3:// address.")


def _from_folder(folder: Path, collection: str) -> Found:
    root = folder.resolve()
    left_out: list[str] = []
    objects = []
    for path in sorted(root.rglob("*")):
        name = path.relative_to(root).as_posix()
        if not path.is_file() or any(part.startswith(".") for part in PurePosixPath(name).parts):
            continue
        if path.is_symlink() and root not in path.resolve().parents:
            left_out.append(f"{name}: links to a place outside of the folder")
        elif reason := _unfit(name, path.stat().st_size):
            left_out.append(f"{name}: {reason}")
        else:
            uri = f"file://{_quoted(path.as_posix())}"
            objects.append(_object(uri, name, _read_file(uri)))
    return Found(Manifest(collection, tuple(objects)), _read_file, tuple(left_out))


def _from_zip(path: Path, collection: str) -> Found:
    base = f"file://{_quoted(path.resolve().as_posix())}!/"
    names: dict[str, str] = {}
    left_out: list[str] = []
    objects = []
    try:
        archive = zipfile.ZipFile(path)
        for entry in sorted(archive.infolist(), key=lambda e: e.filename):
            if entry.is_dir() or PurePosixPath(entry.filename).name.startswith("."):
                continue
            if reason := _unfit(entry.filename, entry.file_size):
                left_out.append(f"{entry.filename}: {reason}")
                continue
            uri = base + _quoted(entry.filename)
            names[uri] = entry.filename
            objects.append(_object(uri, entry.filename, archive.read(entry.filename)))
    except _ZIP_ERRORS as error:
        raise UsageError(f"{path}: can not be read ({error}).") from None
    return Found(
        Manifest(collection, tuple(objects)), lambda uri: archive.read(names[uri]), tuple(left_out)
    )


def _from_s3(where: str, collection: str) -> Found:
    bucket, _, prefix = where.removeprefix("s3://").partition("/")
    client = boto3.client("s3")
    left_out: list[str] = []
    objects = []
    try:
        for key, size in _keys(client, bucket, prefix):
            name = key.removeprefix(prefix).lstrip("/") or key
            if reason := _unfit(name, size):
                left_out.append(f"{key}: {reason}")
                continue
            got = client.get_object(Bucket=bucket, Key=key)
            version = got.get("VersionId") or got["ETag"].strip('"')
            uri = f"s3://{bucket}/{_quoted(key)}"
            objects.append(_object(uri, name, got["Body"].read(), version))
    except _S3_ERRORS as error:
        raise UsageError(f"{where}: can not be read ({error}).") from None
    return Found(
        Manifest(collection, tuple(objects)), lambda uri: _read_s3(client, uri), tuple(left_out)
    )


def _from_manifest(path: Path, collection: str) -> Found:
    """The objects that a manifest names; ingest checks that each still is what it says."""
    manifest = parse(path.read_bytes())
    if manifest.collection != collection:
        raise UsageError(
            f"{path}: is the manifest of collection {manifest.collection!r}, not {collection!r}."
        )
    needs_s3 = any(each.uri.startswith("s3://") for each in manifest.objects)
    client = boto3.client("s3") if needs_s3 else None

    def read(uri: str) -> bytes:
        return _read_s3(client, uri) if uri.startswith("s3://") else _read_file(uri)

    return Found(manifest, read, ())


def _read_file(uri: str) -> bytes:
    path = Path(unquote(uri.removeprefix("file://")))
    try:
        return path.read_bytes()
    except OSError as error:
        raise UsageError(f"{path}: can not be read ({error}).") from None


def _read_s3(client: Any, uri: str) -> bytes:
    bucket, _, key = uri.removeprefix("s3://").partition("/")
    try:
        content: bytes = client.get_object(Bucket=bucket, Key=unquote(key))["Body"].read()
    except _S3_ERRORS as error:
        raise UsageError(f"{uri}: can not be read ({error}).") from None
    return content


def _keys(client: Any, bucket: str, prefix: str) -> Iterator[tuple[str, int]]:
    for page in client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix):
        for entry in page.get("Contents", ()):
            if not entry["Key"].endswith("/"):
                yield entry["Key"], entry["Size"]


def _unfit(name: str, size: int) -> str:
    if not name.isprintable():
        return "its name can not be shown"
    if not name.lower().endswith(SUFFIXES):
        return f"is no text document ({', '.join(SUFFIXES)})"
    if size > MAX_OBJECT_BYTES:
        return f"has {size} bytes; at most {MAX_OBJECT_BYTES} are taken"
    return ""


def _quoted(path: str) -> str:
    """A path as a URI holds it."""
    return path.replace("%", "%25").replace("?", "%3F").replace("#", "%23")


def _object(uri: str, path: str, content: bytes, version: str = "") -> ManifestObject:
    sha256 = hashlib.sha256(content).hexdigest()
    media_type = mimetypes.guess_type(path)[0] or "text/plain"
    return ManifestObject(uri, path, version or sha256, media_type, len(content), sha256)
