"""Archives and payloads that others recorded: every record is understood."""

from __future__ import annotations

import gzip
import json
import zipfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from services.ingest.directory import (
    ChannelKind,
    Directory,
    archive_team,
    make_directory,
    read_channel,
    read_person,
)
from services.ingest.json_lines import read_json_line
from services.ingest.records import (
    DeletedMessage,
    IncomingMessage,
    Place,
    Reading,
    Skipped,
    SkipReason,
    decode_json,
    read_slack_message,
)

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
TS = "1700000000.000100"
DIRECTORY_FILES = ("users.json", "channels.json", "integration_logs.json")


@pytest.fixture(autouse=True)
def data_is_there() -> None:
    if not DATA.is_dir():
        pytest.fail(f"{DATA} is missing: these tests read the archives of ../shared/data")


@dataclass(frozen=True)
class Archive:
    """What one export gave."""

    directory: Directory
    team_id: str
    records: list[dict[str, Any]]
    readings: list[Reading]

    @property
    def messages(self) -> list[IncomingMessage]:
        return [reading for reading in self.readings if isinstance(reading, IncomingMessage)]

    def outcomes(self) -> dict[str, int]:
        """Number of messages, and of records left out by reason."""
        return dict(
            Counter(
                reading.reason.value if isinstance(reading, Skipped) else type(reading).__name__
                for reading in self.readings
            )
        )


def read_archive(path: Path) -> Archive:
    with zipfile.ZipFile(path) as archive:
        files = {
            PurePosixPath(name): decode_json(archive.read(name))
            for name in archive.namelist()
            if name.endswith(".json")
        }
    listed = {path.name: entries(files[path]) for path in files if path.name in DIRECTORY_FILES}
    people = [person for entry in listed["users.json"] if (person := read_person(entry))]
    channels = [
        channel
        for entry in listed["channels.json"]
        if (channel := read_channel(entry, ChannelKind.PUBLIC))
    ]
    directory, team_id = make_directory(people, channels), archive_team(people)
    records = [
        (path.parent.name, record)
        for path, content in files.items()
        if path.name not in DIRECTORY_FILES
        for record in entries(content)
    ]
    readings = [
        read_slack_message(record, Place(team_id, folder, folder, directory))
        for folder, record in records
    ]
    return Archive(directory, team_id, [record for _, record in records], readings)


def entries(content: object) -> list[dict[str, Any]]:
    assert isinstance(content, list)
    return content


@pytest.mark.parametrize(
    ("path", "team_id", "outcomes"),
    [
        (
            "houstondatavis-export/houstondatavis.zip",
            "T061A2UFL",
            {"IncomingMessage": 1031, "notice": 351},
        ),
        (
            "slack-export-viewer-testarchive/testarchive.zip",
            "T0BMHLSRH",
            {"IncomingMessage": 147, "notice": 11},
        ),
        (
            "langchain-slack-export/slack_export.zip",
            "T0534672TWT",
            {"IncomingMessage": 4, "notice": 1},
        ),
        (
            "zulip-slack-fixtures/test_slack_importer.zip",
            "T5YFFM2QY",
            {"IncomingMessage": 82, "notice": 9},
        ),
        (
            "zulip-slack-fixtures/test_unicode_slack_importer.zip",
            "T04LT7JD2AZ",
            {"IncomingMessage": 2, "notice": 3},
        ),
    ],
)
def test_every_record_of_an_export_is_a_message_or_a_notice(
    path: str, team_id: str, outcomes: dict[str, int]
) -> None:
    archive = read_archive(DATA / path)
    assert archive.team_id == team_id
    assert archive.outcomes() == outcomes
    messages = archive.messages
    assert len({message.message_id for message in messages}) == len(messages)
    for message in messages:
        assert message.message_id.startswith(f"slack:{team_id}:")
        assert message.author_id
        assert "<@" not in message.text
        assert "<http" not in message.text
        assert "xox" not in message.text


def test_the_old_export_names_every_author_and_reads_its_file_comments() -> None:
    archive = read_archive(DATA / "houstondatavis-export/houstondatavis.zip")
    assert all(message.author_name for message in archive.messages)
    pairs = [
        (record, reading)
        for record, reading in zip(archive.records, archive.readings, strict=True)
        if record.get("subtype") == "file_comment"
    ]
    assert len(pairs) == 6
    for record, reading in pairs:
        assert isinstance(reading, IncomingMessage)
        assert reading.author_id == record["comment"]["user"]
        assert reading.text.splitlines()[0].strip()
    assert sum(message.edited_at is not None for message in archive.messages) == 37


def test_bot_rows_with_words_only_in_attachments_have_text() -> None:
    archive = read_archive(DATA / "slack-export-viewer-testarchive/testarchive.zip")
    bots = [message for message in archive.messages if message.is_bot]
    assert len(bots) == 94
    assert "executor with simulated annealing rough draft" in "\n".join(bot.text for bot in bots)


def test_the_broadcast_reply_stands_in_its_thread() -> None:
    archive = read_archive(DATA / "zulip-slack-fixtures/test_slack_importer.zip")
    thread = [m.text for m in archive.messages if m.thread_root_ts == "1516677693.000181"]
    assert thread.count("msg sent to general as well") == 1
    assert "_*rabbitduck*_" in thread


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("channels.json", ChannelKind.PUBLIC),
        ("dms.json", ChannelKind.DIRECT),
        ("mpims.json", ChannelKind.GROUP_DIRECT),
    ],
)
def test_every_entry_of_the_channel_fixtures_is_read(name: str, kind: ChannelKind) -> None:
    listed = entries(json.loads((DATA / "zulip-slack-fixtures" / name).read_text()))
    channels = [read_channel(entry, kind) for entry in listed]
    assert listed
    assert all(channel and channel.member_ids for channel in channels)
    assert all(
        bool(channel and channel.name) == (kind is not ChannelKind.DIRECT) for channel in channels
    )


@pytest.mark.parametrize("name", ["user_data.json", "unicode_user_data.json"])
def test_every_entry_of_the_people_fixtures_is_read(name: str) -> None:
    listed = json.loads((DATA / "zulip-slack-fixtures" / name).read_text())
    listed = listed["members"] if isinstance(listed, dict) else listed
    assert listed
    for entry in listed:
        person = read_person(entry)
        assert person is not None
        assert person.display_name
        assert person.is_deleted == entry["deleted"]


def payload_messages() -> Iterator[dict[str, Any]]:
    """Every message of the recorded payloads, those in events, pages and other messages too."""
    files = sorted((DATA / "slack-api-samples").rglob("*.json*"))
    assert len(files) > 100
    for path in files:
        content = path.read_bytes()
        yield from messages_in(
            json.loads(gzip.decompress(content) if path.suffix == ".gz" else content)
        )


def messages_in(value: object) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        if value.get("type") == "message" and ("text" in value or "subtype" in value):
            yield value
        for inner in value.values():
            yield from messages_in(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from messages_in(inner)


def marked(value: object, counter: Iterator[int]) -> object:
    """The payload with a word of its own for each blank text, and a ts for each blank one."""
    if isinstance(value, dict):
        return {key: filled_in(key, inner, counter) for key, inner in value.items()}
    return [marked(inner, counter) for inner in value] if isinstance(value, list) else value


def filled_in(key: str, value: object, counter: Iterator[int]) -> object:
    if key == "text" and value == "":
        return f"<<{next(counter)}>>"
    return TS if key in ("ts", "deleted_ts") else marked(value, counter)


def test_every_recorded_payload_is_understood() -> None:
    place = Place("T1", "C1", "ops", Directory())
    outcomes: Counter[str] = Counter()
    for payload in payload_messages():
        blank = read_slack_message(payload, place)
        assert isinstance(blank, Skipped)
        reading = read_slack_message(marked(payload, count(1)), place)
        outcomes[reading.reason if isinstance(reading, Skipped) else type(reading).__name__] += 1
    assert set(outcomes) == {
        IncomingMessage.__name__,
        DeletedMessage.__name__,
        SkipReason.NOTICE,
        SkipReason.REPLY_COPY,
    }


def test_every_word_of_every_kind_of_block_is_read() -> None:
    sample = DATA / "slack-api-samples/rtm/MessageEvent.json.gz"
    message = json.loads(gzip.decompress(sample.read_bytes()))
    for block in message["blocks"]:
        filled = marked({"text": "top", "ts": "1.000000", "blocks": [block]}, count(1))
        reading = read_slack_message(filled, Place("T1", "C1", "ops", Directory()))
        assert isinstance(reading, IncomingMessage)
        expected = [] if block["type"] == "actions" else list(texts_of(filled))
        assert [text for text in expected if text not in reading.text] == []


def texts_of(value: object) -> Iterator[str]:
    """The marked words outside controls."""
    if isinstance(value, dict):
        text = value.get("text")
        if isinstance(text, str) and text.startswith("<<"):
            yield text
        for key, inner in value.items():
            if key not in ("accessory", "confirm", "options"):
                yield from texts_of(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from texts_of(inner)


def test_every_json_line_of_a_real_corpus_is_a_message() -> None:
    lines = (DATA / "locomo-dev" / "messages.jsonl").read_bytes().splitlines()
    readings = [read_json_line(line) for line in lines]
    assert all(isinstance(reading, IncomingMessage) for reading in readings)
    ids = {reading.message_id for reading in readings if isinstance(reading, IncomingMessage)}
    assert len(ids) == len(lines) == 2_760
