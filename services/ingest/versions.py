"""Which version of a message is kept: the one edited last; of equally old ones the last given."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import Enum, auto

from services.ingest.directory import Directory
from services.ingest.records import IncomingMessage

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Version:
    """A stored message without its text."""

    message_id: str
    channel_id: str
    ts: str
    author_id: str
    author_name: str
    is_bot: bool
    posted_at: datetime
    edited_at: datetime | None
    edited_ts: str
    thread_root_id: str
    content_sha256: str


class Fate(Enum):
    """What became of an incoming message."""

    IMPORTED = auto()
    UPDATED = auto()
    UNCHANGED = auto()
    DELETED_BEFORE = auto()


@dataclass
class Changes:
    """Texts and versions to write, by message id, and the fate of every incoming message."""

    written: dict[str, Version] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    fates: list[Fate] = field(default_factory=list)


def edit_order(edited_ts: str, edited_at: datetime | None) -> tuple[int, int]:
    """Seconds and microseconds of the last edit; (0, 0) when there was none.

    Whole numbers all the way: a float would make two edits of one second equal.
    """
    if edited_ts:
        seconds, _, microseconds = edited_ts.partition(".")
        return int(seconds), int(microseconds or 0)
    if edited_at is None:
        return 0, 0
    elapsed = edited_at - _EPOCH
    return elapsed.days * 86_400 + elapsed.seconds, elapsed.microseconds


def version_of(message: IncomingMessage, directory: Directory) -> Version:
    """What is stored of a message beside its text.

    The author's name is kept only where it differs from the directory's, so that a message follows
    the directory when a person is renamed, and a bot keeps the name it posted under.
    """
    known = directory.people.get(message.author_id)
    is_current = (
        known is not None
        and known.person_id == message.author_id
        and known.display_name == message.author_name
    )
    return Version(
        message_id=message.message_id,
        channel_id=message.channel_id,
        ts=message.ts,
        author_id=message.author_id,
        author_name="" if is_current else message.author_name,
        is_bot=message.is_bot,
        posted_at=message.posted_at,
        edited_at=message.edited_at,
        edited_ts=message.edited_ts,
        thread_root_id=message.thread_root_id,
        content_sha256=message.content_sha256,
    )


def resolve(
    incoming: Iterable[IncomingMessage],
    stored: Mapping[str, Version],
    deleted: Container[str],
    directory: Directory,
) -> Changes:
    """Decide about each message in the order given, as if each were a batch of its own."""
    changes = Changes()
    messages = list(incoming)
    fates = [_resolve_one(message, stored, deleted, directory, changes) for message in messages]
    # Two copies in one batch may lead back to what is stored.
    for message_id, version in stored.items():
        if changes.written.get(message_id) == version:
            del changes.written[message_id]
    changes.fates = [
        Fate.UNCHANGED
        if fate is Fate.UPDATED and message.message_id not in changes.written
        else fate
        for message, fate in zip(messages, fates, strict=True)
    ]
    return changes


def _resolve_one(
    message: IncomingMessage,
    stored: Mapping[str, Version],
    deleted: Container[str],
    directory: Directory,
    changes: Changes,
) -> Fate:
    if message.message_id in deleted:
        return Fate.DELETED_BEFORE
    version = version_of(message, directory)
    before = changes.written.get(message.message_id) or stored.get(message.message_id)
    if before is not None:
        version = _in_its_thread(version, before)
        if version == before or _order(version) < _order(before):
            return Fate.UNCHANGED
    changes.written[message.message_id] = version
    changes.texts[message.message_id] = message.text
    return Fate.IMPORTED if before is None else Fate.UPDATED


def _in_its_thread(version: Version, before: Version) -> Version:
    """A copy of a Slack reply that lost its thread stays in it: replies never leave theirs."""
    if version.ts and version.thread_root_id == version.message_id:
        return replace(version, thread_root_id=before.thread_root_id)
    return version


def _order(version: Version) -> tuple[int, int]:
    return edit_order(version.edited_ts, version.edited_at)
