"""Where documents come from: a folder, a zip file, an S3 prefix. Each object is read when asked."""

from __future__ import annotations

import hashlib
import mimetypes
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import boto3
import botocore.exceptions

from services.cli.connection import UsageError
from services.ingest.manifest import MAX_OBJECT_BYTES, Manifest, ManifestObject

SUFFIXES = (".md", ".markdown", ".txt", ".rst")


@dataclass(frozen=True)
class Found:
    """The manifest of what was found, how to read an object again by its URI, and what was left
    out, one sentence each."""

    manifest: Manifest
    read: Callable[[str], bytes]
    left_out: tuple[str, ...]


def find_documents(where: str, collection: str) -> Found:
    """Everything readable at a place. Raises UsageError that names it."""
    if where.startswith("s3://"):
        return _from_s3(where, collection)
    path = Path(where)
    if path.is_dir():
        return _from_folder(path, collection)
    if path.is_file() and zipfile.is_zipfile(path):
        return _from_zip(path, collection)
    raise UsageError(f"{where}: is no folder, no zip file and no s3:// address")


def _from_folder(folder: Path, collection: str) -> Found:
    root = folder.resolve()
    files: dict[str, Path] = {}
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
            each = _object(
                f"file://{path.as_posix()}".replace("?", "%3F").replace("#", "%23"),
                name,
                path.read_bytes(),
                "",
            )
            files[each.uri] = path
            objects.append(each)
    return Found(
        Manifest(collection, tuple(objects)), lambda uri: files[uri].read_bytes(), tuple(left_out)
    )


def _from_zip(path: Path, collection: str) -> Found:
    archive = zipfile.ZipFile(path)
    base = f"file://{path.resolve().as_posix()}!/".replace("?", "%3F").replace("#", "%23")
    names: dict[str, str] = {}
    left_out: list[str] = []
    objects = []
    for entry in sorted(archive.infolist(), key=lambda e: e.filename):
        if entry.is_dir() or PurePosixPath(entry.filename).name.startswith("."):
            continue
        if reason := _unfit(entry.filename, entry.file_size):
            left_out.append(f"{entry.filename}: {reason}")
            continue
        uri = base + entry.filename.replace("?", "%3F").replace("#", "%23")
        names[uri] = entry.filename
        objects.append(_object(uri, entry.filename, archive.read(entry.filename), ""))
    return Found(
        Manifest(collection, tuple(objects)), lambda uri: archive.read(names[uri]), tuple(left_out)
    )


def _from_s3(where: str, collection: str) -> Found:
    bucket, _, prefix = where.removeprefix("s3://").partition("/")
    client = boto3.client("s3")
    left_out: list[str] = []
    objects = []
    keys: dict[str, tuple[str, str]] = {}
    try:
        for key, size in _keys(client, bucket, prefix):
            name = key.removeprefix(prefix).lstrip("/") or key
            if reason := _unfit(name, size):
                left_out.append(f"{key}: {reason}")
                continue
            got = client.get_object(Bucket=bucket, Key=key)
            version = got.get("VersionId") or got["ETag"].strip('"')
            uri = f"s3://{bucket}/{key}".replace("?", "%3F").replace("#", "%23")
            each = _object(uri, name, got["Body"].read(), version)
            keys[uri] = (bucket, key)
            objects.append(each)
    except (botocore.exceptions.BotoCoreError, botocore.exceptions.ClientError) as error:
        raise UsageError(f"{where}: can not be read ({error})") from None

    def read(uri: str) -> bytes:
        at, key = keys[uri]
        content: bytes = client.get_object(Bucket=at, Key=key)["Body"].read()
        return content

    return Found(Manifest(collection, tuple(objects)), read, tuple(left_out))


def _keys(client: Any, bucket: str, prefix: str) -> Iterator[tuple[str, int]]:
    for page in client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix):
        for entry in page.get("Contents", ()):
            if not entry["Key"].endswith("/"):
                yield entry["Key"], entry["Size"]


def _unfit(name: str, size: int) -> str:
    if not name.lower().endswith(SUFFIXES):
        return f"is no text document ({', '.join(SUFFIXES)})"
    if size > MAX_OBJECT_BYTES:
        return f"has {size} bytes; at most {MAX_OBJECT_BYTES} are taken"
    return ""


def _object(uri: str, path: str, content: bytes, version: str) -> ManifestObject:
    sha256 = hashlib.sha256(content).hexdigest()
    media_type = mimetypes.guess_type(path)[0] or "text/plain"
    return ManifestObject(uri, path, version or sha256, media_type, len(content), sha256)
