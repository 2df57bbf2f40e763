"""The archive reader: every shape of archive to the same requests, and clear faults."""

from __future__ import annotations

import io
import json
import os
import random
import tracemalloc
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recall.corpus.v1 import corpus_pb2
from recall.ingest.v1 import ingest_pb2
from services.cli import archive
from services.cli.archive import ArchiveError, read_archive
from services.cli.json_arrays import JsonFileError, read_array
from tests import builders as b


def read(path: Path) -> list[b.Request]:
    return list(read_archive(path, ingest_pb2.ImportHeader(workspace_id="W")))


def texts(requests: list[b.Request]) -> dict[str, list[str]]:
    """Texts by channel folder."""
    found: dict[str, list[str]] = {}
    for request in requests:
        if request.HasField("messages"):
            for raw in request.messages.records_json:
                found.setdefault(request.messages.channel_name, []).append(json.loads(raw)["text"])
    return found


def left_out(requests: list[b.Request]) -> dict[str, str]:
    return {
        request.skipped_file.file_name: request.skipped_file.reason
        for request in requests
        if request.HasField("skipped_file")
    }


def directories(requests: list[b.Request]) -> list[str]:
    return [
        ingest_pb2.DirectoryKind.Name(request.directory.kind)
        for request in requests
        if request.HasField("directory")
    ]


@pytest.mark.parametrize("prefix", ["", "Acme Slack export Mar 1 2026/", "a/b/"])
@pytest.mark.parametrize("write", [b.write_zip, b.write_folder])
def test_zip_and_folder_nested_or_not_read_the_same(
    tmp_path: Path, prefix: str, write: object
) -> None:
    assert callable(write)
    files = b.export_files(b.slack_record("hello"), b.slack_record("again", 1))
    path = write(tmp_path / "export", {prefix + name: data for name, data in files.items()})
    requests = read(path)
    assert requests[0].header.source == corpus_pb2.SOURCE_SLACK
    assert requests[0].header.workspace_id == "W"
    assert directories(requests) == ["DIRECTORY_KIND_USERS", "DIRECTORY_KIND_CHANNELS"]
    assert texts(requests) == {"general": ["hello", "again"]}
    assert left_out(requests) == {}


def test_directories_come_before_messages_and_days_in_order(tmp_path: Path) -> None:
    files: dict[str, object] = {
        "a/2026-01-02.json": [b.slack_record("second")],
        "a/2026-01-01.json": [b.slack_record("first")],
        "mpims.json": [{"id": "G1"}],
        "groups.json": [{"id": "P1"}],
        "dms.json": [{"id": "D1"}],
        "users.json": [b.slack_user("U1", "Ada")],
        "channels.json": [b.slack_channel("C1", "a")],
    }
    requests = read(b.write_zip(tmp_path / "export.zip", files))
    kinds = [request.WhichOneof("part") for request in requests]
    assert kinds == ["header", *["directory"] * 5, "messages", "messages"]
    assert texts(requests) == {"a": ["first", "second"]}


def test_a_name_without_the_utf8_flag_is_read_as_utf8(tmp_path: Path) -> None:
    path = tmp_path / "export.zip"
    with zipfile.ZipFile(path, "w") as target:
        target.writestr("channels.json", json.dumps([b.slack_channel("C1", "チャネル")]))
        day = _Unflagged("チャネル/2026-01-01.json")
        target.writestr(day, json.dumps([b.slack_record("hello")]))
    with zipfile.ZipFile(path) as written:
        assert all(not entry.flag_bits & 0x800 for entry in written.infolist())
    assert texts(read(path)) == {"チャネル": ["hello"]}


class _Unflagged(zipfile.ZipInfo):
    """An entry that is written as UTF-8 without saying so."""

    def _encodeFilenameFlags(self) -> tuple[bytes, int]:  # noqa: N802
        return self.filename.encode(), self.flag_bits & ~0x800


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "it is empty"),
        (b"   \n", "it is empty"),
        (b"hello", "it holds no JSON array"),
        (b'{"text": "an object"}', "it holds no JSON array"),
        (b'[{"text": "first"}, {"text": ', "its JSON is broken: it ends too early"),
        (b'[{"text": "first"}, {"text": ["a"}]', "its JSON is broken: brackets do not match"),
        (b'[{"text": "first"}] [', "something follows"),
    ],
)
def test_a_broken_file_is_left_out_and_the_rest_goes_on(
    tmp_path: Path, content: bytes, reason: str
) -> None:
    files = {**b.export_files(b.slack_record("kept")), "general/2026-03-01.json": content}
    requests = read(b.write_zip(tmp_path / "export.zip", files))
    assert "kept" in texts(requests)["general"]
    assert left_out(requests)["general/2026-03-01.json"].startswith(reason)


def test_records_before_a_break_are_kept_and_counted(tmp_path: Path) -> None:
    broken = b'[{"text": "one"}, {"text": "two"}, {"text'
    files = {**b.export_files(), "general/2026-03-01.json": broken}
    requests = read(b.write_zip(tmp_path / "export.zip", files))
    assert texts(requests) == {"general": ["one", "two"]}
    assert "the 2 records before" in left_out(requests)["general/2026-03-01.json"]


def test_a_damaged_member_of_a_zip_is_left_out(tmp_path: Path) -> None:
    path = b.write_zip(tmp_path / "export.zip", b.export_files(b.slack_record("findable text")))
    path.write_bytes(path.read_bytes().replace(b"findable text", b"replaced text"))
    assert "can not be read" in left_out(read(path))["general/2026-03-02.json"]


@pytest.mark.parametrize(
    "compression",
    [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA],
)
def test_no_damage_to_a_zip_is_more_than_an_archive_error_or_a_file_left_out(
    tmp_path: Path, compression: int
) -> None:
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w", compression) as made:
        for name, content in b.export_files(b.slack_record("hello")).items():
            made.writestr(name.replace("general", "général"), b.as_bytes(content))
    chance = random.Random(compression)
    path = tmp_path / "damaged.zip"
    for _ in range(300):
        content = bytearray(whole.getvalue())
        content[chance.randrange(len(content))] = chance.randrange(256)
        path.write_bytes(content)
        try:
            requests = read(path)
        except ArchiveError as error:
            assert "damaged.zip" in str(error)
        else:
            assert requests[0].HasField("header")


def test_two_files_of_one_name_are_both_read(tmp_path: Path) -> None:
    path = b.write_zip(tmp_path / "export", b.export_files(b.slack_record("first")))
    with zipfile.ZipFile(path, "a") as made, pytest.warns(UserWarning, match="Duplicate"):
        made.writestr("general/2026-03-02.json", b.as_bytes([b.slack_record("second", 1)]))
        made.writestr("general/2026-03-02.json", b.as_bytes([b.slack_record("third", 2)]))
    assert sorted(texts(read(path))["general"]) == ["first", "second", "third"]


def test_names_that_are_no_utf8_keep_their_bytes_escaped(tmp_path: Path) -> None:
    folder = b.write_folder(tmp_path / "export", b.export_files(b.slack_record("plain")))
    odd = folder / os.fsdecode(b"caf\xe9")
    odd.mkdir()
    (odd / "2026-03-02.json").write_bytes(b.as_bytes([b.slack_record("odd", 1)]))
    assert texts(read(folder)) == {"general": ["plain"], "caf\\xe9": ["odd"]}


def test_files_that_hold_no_messages_are_named(tmp_path: Path) -> None:
    files = {
        **b.export_files(b.slack_record("kept")),
        "integration_logs.json": [],
        "general/attachments/cat.png": b"\x89PNG",
        "notes.txt": b"hi",
        "__MACOSX/general/2026-03-02.json": b"junk",
        ".DS_Store": b"junk",
    }
    requests = read(b.write_zip(tmp_path / "export.zip", files))
    assert set(left_out(requests)) == {
        "integration_logs.json", "general/attachments/cat.png", "notes.txt",
    }  # fmt: skip
    assert texts(requests) == {"general": ["kept"]}


def test_a_file_that_is_not_named_after_a_day_is_read(tmp_path: Path) -> None:
    files = {**b.export_files(), "general/copy of day.json": [b.slack_record("copied")]}
    assert texts(read(b.write_zip(tmp_path / "e.zip", files))) == {"general": ["copied"]}


def test_large_files_are_split_into_requests_of_four_megabytes(tmp_path: Path) -> None:
    entries = [b.slack_record("x" * 1_000_000, second) for second in range(9)]
    requests = read(b.write_zip(tmp_path / "e.zip", b.export_files(*entries)))
    messages = [request for request in requests if request.HasField("messages")]
    assert [len(request.messages.records_json) for request in messages] == [3, 3, 3]
    assert all(request.ByteSize() < 4_000_000 for request in messages)


def test_many_small_records_are_split_by_number(tmp_path: Path) -> None:
    entries = [b.slack_record("x", second) for second in range(2_500)]
    requests = read(b.write_zip(tmp_path / "e.zip", b.export_files(*entries)))
    sizes = [len(r.messages.records_json) for r in requests if r.HasField("messages")]
    assert sizes == [1_000, 1_000, 500]


def test_lines_are_read_one_by_one(tmp_path: Path) -> None:
    path = tmp_path / "chat.jsonl"
    lines = [json.dumps(b.json_line("1", "one")), "", "  ", json.dumps(b.json_line("2", "two"))]
    path.write_text("\n".join(lines), "utf-8")
    requests = read(path)
    assert requests[0].header.source == corpus_pb2.SOURCE_SYNTHETIC
    assert texts(requests) == {"": ["one", "two"]}


@pytest.mark.parametrize("name", ["", "messages.jsonl"])
def test_lines_with_their_directories_are_one_archive(tmp_path: Path, name: str) -> None:
    folder = b.write_folder(
        tmp_path / "set",
        {
            "messages.jsonl": json.dumps(b.json_line("1", "one")).encode(),
            "channels.json": [{"name": "ops", "private": True}],
            "people.json": [{"id": "ada", "name": "Ada"}],
            "questions.jsonl": b"{}",
        },
    )
    requests = read(folder / name)
    assert directories(requests) == ["DIRECTORY_KIND_USERS", "DIRECTORY_KIND_CHANNELS"]
    assert texts(requests) == {"": ["one"]}
    assert set(left_out(requests)) == {"questions.jsonl"}


def test_what_is_no_archive_says_so(tmp_path: Path) -> None:
    picture = tmp_path / "cat.png"
    picture.write_bytes(b"\x89PNG")
    empty = tmp_path / "empty"
    empty.mkdir()
    cut = tmp_path / "cut.zip"
    cut.write_bytes(b.write_zip(tmp_path / "e.zip", b.export_files()).read_bytes()[:-30])
    for path, words in (
        (tmp_path / "missing.zip", "no such file or folder"),
        (picture, "is no archive"),
        (empty, "holds neither a Slack export"),
        (cut, "is no archive"),
    ):
        with pytest.raises(ArchiveError, match=words) as raised:
            read(path)
        assert str(path) in str(raised.value)


def test_a_line_over_the_limit_is_left_out_whole(tmp_path: Path) -> None:
    path = tmp_path / "chat.jsonl"
    with path.open("wb") as file:
        file.write(b"1\n")
        file.write(b"x" * (archive.RECORD_BYTES + 10))
        file.write(b"\n2\n")
    requests = read(path)
    records = [bytes(raw) for request in requests for raw in request.messages.records_json]
    assert records == [b"1", b"2"]
    assert "record 2 is over" in left_out(requests)["chat.jsonl"]


@pytest.mark.parametrize(
    ("content", "elements"),
    [
        (b"[]", []),
        (b" \n[ ]\n ", []),
        (b'[{"ts": 1439022979.000100}]', [b'{"ts": 1439022979.000100}']),
        (b'\xef\xbb\xbf[{"t": "\xc3\xa9"}]', [b'{"t": "\xc3\xa9"}']),
        (b'[{"t": "\xff!"} , {}]', [b'{"t": "\xff!"}', b"{}"]),
        (b'[{"t": "]}\\"[{"}, [1, [2]]]', [b'{"t": "]}\\"[{"}', b"[1, [2]]"]),
        (b'[{"t": "ends with \\\\"}, {}]', [b'{"t": "ends with \\\\"}', b"{}"]),
        (b'[{"a": 1}, oops, {"a": 2}]', [b'{"a": 1}', b"oops", b'{"a": 2}']),
        (b'[1, "two", null]', [b'1, "two", null']),
        (b"[" + b"9" * 10_000 + b"]", [b"9" * 10_000]),
        (b"[{}," + b"[" * 50_000 + b"]" * 50_000 + b"]", [b"{}", b"[" * 50_000 + b"]" * 50_000]),
    ],
)
def test_elements_of_an_array_are_its_bytes(content: bytes, elements: list[bytes]) -> None:
    assert list(read_array(io.BytesIO(content))) == elements


@given(
    st.lists(
        st.dictionaries(
            st.text(max_size=5),
            st.recursive(
                st.one_of(st.text(), st.integers(), st.none()),
                lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
                max_leaves=5,
            ),
        )
    ),
    st.booleans(),
    st.integers(1, 50),
)
def test_any_array_comes_back_whatever_the_blocks(
    entries: list[dict[str, object]], is_ascii: bool, block_bytes: int
) -> None:
    content = json.dumps(entries, ensure_ascii=is_ascii, indent=1).encode("utf-8", "surrogatepass")
    found = read_array(_InBlocks(content, block_bytes))
    assert [json.loads(raw.decode("utf-8", "surrogatepass")) for raw in found] == entries


class _InBlocks(io.BytesIO):
    """A stream that gives few bytes at a time."""

    def __init__(self, content: bytes, block_bytes: int) -> None:
        super().__init__(content)
        self._block_bytes = block_bytes

    def read(self, size: int | None = -1) -> bytes:
        return super().read(self._block_bytes)


class _Endless(io.RawIOBase):
    """An array that never ends: reading it whole would never return."""

    def __init__(self) -> None:
        self._first = True

    def read(self, size: int = -1) -> bytes:
        begin, self._first = (b"[" if self._first else b""), False
        return begin + b'{"text": "again"},' * 100


def test_an_array_is_read_without_its_end() -> None:
    elements: Iterator[bytes] = read_array(_Endless())  # type: ignore[arg-type]
    assert [next(elements) for _ in range(1_000)] == [b'{"text": "again"}'] * 1_000


def test_an_element_without_end_is_a_fault_before_memory_is() -> None:
    class NoEnd(io.RawIOBase):
        def read(self, size: int = -1) -> bytes:
            return b'[{"text": "' + b"x" * 4_000_000

    with pytest.raises(JsonFileError, match="over 48000000 bytes"):
        list(read_array(NoEnd()))  # type: ignore[arg-type]


def test_white_space_before_an_array_never_gathers_in_memory() -> None:
    stream = io.BytesIO(b" " * 8_000_000 + b"[1]")
    tracemalloc.start()
    try:
        assert list(read_array(stream)) == [b"1"]
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()
