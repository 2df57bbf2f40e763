"""What is taken of a folder, a zip file, a bucket or a manifest, and what is told to be left."""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Iterator
from pathlib import Path

import boto3
import pytest
from moto.server import ThreadedMotoServer

from services.cli.connection import UsageError
from services.cli.document_sources import Found, find_documents
from services.manifest import canonical, check

TEXTS = {"travel.md": "Book trains.", "hr/pay.txt": "On the 25th.", "odd #1 100%?.md": "Odd."}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "notes"
    for name, text in TEXTS.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, "utf-8")
    (root / "photo.png").write_bytes(b"png")
    (root / ".git").mkdir()
    (root / ".git" / "config.md").write_text("hidden", "utf-8")
    return root


def by_path(found: Found) -> dict[str, str]:
    """Texts by path, each read by its URI; the manifest must be one that can be built."""
    check(found.manifest)
    texts = {}
    for each in found.manifest.objects:
        content = found.read(each.uri)
        assert each.sha256 == hashlib.sha256(content).hexdigest()
        assert each.size == len(content)
        texts[each.path] = content.decode()
    return texts


def test_a_folder_gives_its_texts_and_tells_what_it_leaves_out(folder: Path) -> None:
    found = find_documents(str(folder), "notes")
    assert by_path(found) == TEXTS
    assert [each.split(":")[0] for each in found.left_out] == ["photo.png"]


def test_a_link_out_of_the_folder_is_left_out(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "secret.md").write_text("secret", "utf-8")
    (folder / "link.md").symlink_to(tmp_path / "secret.md")
    found = find_documents(str(folder), "notes")
    assert by_path(found) == TEXTS
    assert any("outside of the folder" in each for each in found.left_out)


def test_a_zip_file_gives_the_same_paths_and_contents(folder: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "notes.zip", "w") as archive:
        for name in (*TEXTS, "photo.png"):
            archive.write(folder / name, name)
    found = find_documents(str(tmp_path / "notes.zip"), "notes")
    assert by_path(found) == TEXTS
    assert [each.split(":")[0] for each in found.left_out] == ["photo.png"]


def test_a_manifest_names_exactly_what_is_built(folder: Path, tmp_path: Path) -> None:
    stored = canonical(find_documents(str(folder), "notes").manifest)
    (tmp_path / "notes.json").write_bytes(stored)
    (folder / "later.md").write_text("later", "utf-8")
    found = find_documents(str(tmp_path / "notes.json"), "notes")
    assert by_path(found) == TEXTS
    with pytest.raises(UsageError, match="collection 'notes', not 'other'"):
        find_documents(str(tmp_path / "notes.json"), "other")
    (folder / "travel.md").unlink()
    with pytest.raises(UsageError, match=r"travel\.md: can not be read"):
        by_path(found)


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A bucket of a local S3 server, with TEXTS under docs/."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    for name, value in (
        ("AWS_ENDPOINT_URL", f"http://{host}:{port}"),
        ("AWS_ACCESS_KEY_ID", "id"),
        ("AWS_SECRET_ACCESS_KEY", "secret"),
        ("AWS_DEFAULT_REGION", "us-east-1"),
    ):
        monkeypatch.setenv(name, value)
    client = boto3.client("s3")
    client.create_bucket(Bucket="team")
    for name, text in TEXTS.items():
        client.put_object(Bucket="team", Key=f"docs/{name}", Body=text.encode())
    client.put_object(Bucket="team", Key="docs/photo.png", Body=b"png")
    client.put_object(Bucket="team", Key="other/far.md", Body=b"far")
    yield "team"
    server.stop()


def test_a_bucket_gives_what_is_under_the_prefix(bucket: str) -> None:
    found = find_documents(f"s3://{bucket}/docs/", "notes")
    assert by_path(found) == TEXTS
    assert {each.uri.split("/")[2] for each in found.manifest.objects} == {bucket}
    assert all(each.version_id for each in found.manifest.objects)
    assert [each.split(":")[0] for each in found.left_out] == ["docs/photo.png"]


def test_more_objects_than_a_page_of_the_listing_are_all_taken(bucket: str) -> None:
    client = boto3.client("s3")
    for number in range(1_001):
        client.put_object(Bucket=bucket, Key=f"many/{number}.md", Body=b"x")
    assert len(find_documents(f"s3://{bucket}/many/", "notes").manifest.objects) == 1_001


def test_a_manifest_of_a_bucket_is_read_from_it(bucket: str, tmp_path: Path) -> None:
    stored = canonical(find_documents(f"s3://{bucket}/docs", "notes").manifest)
    (tmp_path / "notes.json").write_bytes(stored)
    assert by_path(find_documents(str(tmp_path / "notes.json"), "notes")) == TEXTS


def test_a_bucket_that_is_not_there_is_named(bucket: str) -> None:
    with pytest.raises(UsageError, match="s3://nowhere/docs: can not be read"):
        find_documents("s3://nowhere/docs", "notes")


@pytest.mark.parametrize("name", ["gone", "file.md"])
def test_a_place_that_holds_no_documents_is_named(tmp_path: Path, name: str) -> None:
    (tmp_path / "file.md").write_text("text", "utf-8")
    with pytest.raises(UsageError, match=f"{name}: is no folder"):
        find_documents(str(tmp_path / name), "notes")
