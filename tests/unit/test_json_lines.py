"""JSON lines: a message as it stands, or a fault that names the key."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from services.corpus import Source
from services.ingest.json_lines import read_json_line
from services.ingest.records import IncomingMessage, Skipped, SkipReason

LINE = {
    "channel": "conv0",
    "id": "D1:2",
    "root": "D1:1",
    "author": "Ana Li",
    "posted_at": "2023-05-08T13:57:00Z",
    "text": "Hey <b> &amp; all",
}


def read_line(line: object) -> IncomingMessage | Skipped:
    return read_json_line(json.dumps(line).encode())


def test_a_json_line_is_a_synthetic_message_as_it_stands() -> None:
    assert read_line(LINE) == IncomingMessage(
        message_id="synthetic:conv0:D1:2",
        source=Source.SYNTHETIC,
        channel_id="conv0",
        channel_name="conv0",
        author_id="Ana Li",
        author_name="Ana Li",
        posted_at=datetime(2023, 5, 8, 13, 57, tzinfo=UTC),
        text="Hey <b> &amp; all",
        thread_root_id="synthetic:conv0:D1:1",
    )


@pytest.mark.parametrize("root", [None, "", "D1:2"])
def test_a_line_without_another_root_is_its_own_root(root: str | None) -> None:
    reading = read_line(LINE | {"root": root})
    assert isinstance(reading, IncomingMessage)
    assert reading.thread_root_id == reading.message_id


def test_a_line_can_be_edited() -> None:
    reading = read_line(LINE | {"edited_at": "2023-05-09T00:00:00+02:00"})
    assert isinstance(reading, IncomingMessage)
    assert reading.edited_at == datetime(2023, 5, 8, 22, tzinfo=UTC)


def test_numbers_stand_for_ids() -> None:
    reading = read_line(LINE | {"id": 7, "root": 6})
    assert isinstance(reading, IncomingMessage)
    assert reading.message_id == "synthetic:conv0:7"
    assert reading.thread_root_id == "synthetic:conv0:6"


@pytest.mark.parametrize("key", ["channel", "id", "root", "author", "posted_at", "text"])
def test_a_missing_key_is_named(key: str) -> None:
    reading = read_line({name: value for name, value in LINE.items() if name != key})
    assert isinstance(reading, Skipped)
    assert reading.reason is SkipReason.MISSING_FIELD
    assert reading.detail.startswith(f"key {key} is missing")


@pytest.mark.parametrize(
    ("changed", "reason", "detail"),
    [
        ({"channel": ""}, SkipReason.MISSING_FIELD, "channel"),
        ({"author": " "}, SkipReason.MISSING_FIELD, "author"),
        ({"id": None}, SkipReason.MISSING_FIELD, "id"),
        ({"text": 5}, SkipReason.MISSING_FIELD, "text"),
        ({"posted_at": "yesterday"}, SkipReason.MISSING_FIELD, "posted_at"),
        ({"posted_at": 1700000000.5}, SkipReason.MISSING_FIELD, "posted_at"),
        ({"edited_at": "yesterday"}, SkipReason.MISSING_FIELD, "edited_at"),
        ({"text": " "}, SkipReason.NO_TEXT, ""),
    ],
)
def test_a_wrong_value_is_named(
    changed: dict[str, object], reason: SkipReason, detail: str
) -> None:
    reading = read_line(LINE | changed)
    assert isinstance(reading, Skipped)
    assert reading.reason is reason
    assert detail in reading.detail


@pytest.mark.parametrize("raw", [b"", b"{", b"[]", b"3"])
def test_a_line_that_is_no_object_is_skipped(raw: bytes) -> None:
    assert isinstance(read_json_line(raw), Skipped)


def test_a_line_is_made_storable() -> None:
    reading = read_line(LINE | {"text": "a\0b \ud800 https://f.test/?t=xoxe-1-2", "author": "A\0"})
    assert isinstance(reading, IncomingMessage)
    assert (reading.text, reading.author_name) == ("ab ? https://f.test/", "A")
