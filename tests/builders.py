"""Builders of raw records, directory entries, requests and messages for every test."""

from __future__ import annotations

import json
import zipfile
from collections.abc import AsyncIterator, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

from recall.corpus.v1 import corpus_pb2
from recall.ingest.v1 import ingest_pb2
from services.corpus import Message, slack_message_id

TEAM = "T0TEAM"
GENERAL = "C0GENERAL"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Record = dict[str, object]
Request = ingest_pb2.ImportMessagesRequest


def ts_of(second: int, microsecond: int = 100) -> str:
    """A Slack ts, some seconds after 2026-03-02 09:00 UTC."""
    return f"{1_772_442_000 + second}.{microsecond:06d}"


def slack_record(text: str, second: int = 0, /, **fields: object) -> Record:
    """A message of U1; other fields of the record by name."""
    return {"type": "message", "user": "U1", "ts": ts_of(second), "text": text, **fields}


def slack_user(person_id: str, name: str, **fields: object) -> Record:
    """An entry of users.json."""
    profile = {"real_name": name, "display_name": name}
    return {
        "id": person_id, "team_id": TEAM, "name": name.lower(), "profile": profile, **fields
    }  # fmt: skip


def slack_channel(channel_id: str, name: str, **fields: object) -> Record:
    """An entry of channels.json."""
    return {"id": channel_id, "name": name, "members": ["U1"], **fields}


def json_line(local_id: str, text: str, second: int = 0, **fields: object) -> Record:
    """A JSON line of channel ops by Ada."""
    posted_at = instant(second).isoformat().replace("+00:00", "Z")
    return {
        "channel": "ops", "id": local_id, "root": local_id, "author": "Ada",
        "posted_at": posted_at, "text": text, **fields,
    }  # fmt: skip


def instant(second: int = 0) -> datetime:
    """Some seconds after 2026-03-02 09:00 UTC."""
    return EPOCH + timedelta(seconds=1_772_442_000 + second)


def message_id(second: int = 0, channel_id: str = GENERAL, team_id: str = TEAM) -> str:
    """Id of ``slack_record(text, second)``."""
    return slack_message_id(team_id, channel_id, ts_of(second))


def message(text: str, second: int = 0, **fields: object) -> Message:
    """A stored message of #general as its reader sees it."""
    own_id = message_id(second)
    given: dict[str, object] = {
        "message_id": own_id, "workspace_id": "W", "channel_id": GENERAL,
        "channel_name": "general", "author_id": "U1", "author_name": "Ada",
        "posted_at": instant(second), "text": text, "thread_root_id": own_id,
    }  # fmt: skip
    return Message(**{**given, **fields})  # type: ignore[arg-type]


def header(workspace_id: str = "W", **fields: object) -> Request:
    """The header of a Slack import into workspace W."""
    given: dict[str, object] = {"workspace_id": workspace_id, "source": corpus_pb2.SOURCE_SLACK}
    return Request(header=ingest_pb2.ImportHeader(**{**given, **fields}))  # type: ignore[arg-type]


def lines_header(workspace_id: str = "W", **fields: object) -> Request:
    """The header of a JSON-lines import into workspace W."""
    return header(workspace_id, source=corpus_pb2.SOURCE_SYNTHETIC, **fields)


def users(*entries: Record) -> Request:
    """users.json."""
    return _directory(ingest_pb2.DIRECTORY_KIND_USERS, entries)


def channels(*entries: Record) -> Request:
    """channels.json."""
    return _directory(ingest_pb2.DIRECTORY_KIND_CHANNELS, entries)


def groups(*entries: Record) -> Request:
    """groups.json."""
    return _directory(ingest_pb2.DIRECTORY_KIND_GROUPS, entries)


def dms(*entries: Record) -> Request:
    """dms.json."""
    return _directory(ingest_pb2.DIRECTORY_KIND_DMS, entries)


def mpims(*entries: Record) -> Request:
    """mpims.json."""
    return _directory(ingest_pb2.DIRECTORY_KIND_MPIMS, entries)


def records(*entries: Record | bytes, folder: str = "general", file: str = "") -> Request:
    """Messages of one file of a channel's folder."""
    raw = [entry if isinstance(entry, bytes) else json.dumps(entry).encode() for entry in entries]
    file_name = file or f"{folder}/2026-03-02.json"
    return Request(
        messages=ingest_pb2.MessageRecords(
            channel_name=folder, file_name=file_name, records_json=raw
        )
    )


def slack_import(
    *entries: Record | bytes, folder: str = "general", **fields: object
) -> list[Request]:
    """A whole import of #general: Ada is U1, Grace is U2."""
    return [
        header(**fields),  # type: ignore[arg-type]
        users(slack_user("U1", "Ada"), slack_user("U2", "Grace")),
        channels(slack_channel(GENERAL, "general")),
        records(*entries, folder=folder),
    ]


async def as_stream(requests: Iterable[Request]) -> AsyncIterator[Request]:
    """Requests as a client streams them."""
    for request in requests:
        yield request


def write_zip(path: Path, files: Mapping[str, object]) -> Path:
    """A zip of JSON files; a value that is bytes goes in as it is."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, as_bytes(content))
    return path


def write_folder(path: Path, files: Mapping[str, object]) -> Path:
    """A folder of JSON files."""
    for name, content in files.items():
        target = path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(as_bytes(content))
    return path


def as_bytes(content: object) -> bytes:
    """A file's bytes: JSON, unless it is bytes already."""
    return content if isinstance(content, bytes) else json.dumps(content).encode()


def export_files(*entries: Record) -> dict[str, object]:
    """The files of a small Slack export with one day of #general."""
    return {
        "users.json": [slack_user("U1", "Ada"), slack_user("U2", "Grace")],
        "channels.json": [slack_channel(GENERAL, "general")],
        "general/2026-03-02.json": list(entries),
    }


def _directory(kind: ingest_pb2.DirectoryKind.ValueType, entries: Iterable[Record]) -> Request:
    raw = [json.dumps(entry).encode() for entry in entries]
    return Request(directory=ingest_pb2.DirectoryRecords(kind=kind, records_json=raw))
