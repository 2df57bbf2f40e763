"""What the directory files of an archive list: people, channels, members, and folder names."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from services.corpus import Source
from services.ingest.directory import (
    Channel,
    ChannelKind,
    Directory,
    Person,
    channel_display_name,
    read_channel,
    read_person,
)
from services.ingest.identifiers import storable_id
from services.ingest.markup import one_line, storable
from services.ingest.records import decode_json


class DirectoryFile(StrEnum):
    """Which directory file an entry stood in."""

    USERS = "users"
    CHANNELS = "channels"
    GROUPS = "groups"
    DMS = "dms"
    MPIMS = "mpims"


_KINDS = {
    DirectoryFile.CHANNELS: ChannelKind.PUBLIC,
    DirectoryFile.GROUPS: ChannelKind.PRIVATE,
    DirectoryFile.DMS: ChannelKind.DIRECT,
    DirectoryFile.MPIMS: ChannelKind.GROUP_DIRECT,
}


@dataclass(frozen=True)
class PersonRow:
    """A person as stored. ``in_directory`` is false for a guest known from messages only."""

    person_id: str
    display_name: str
    real_name: str
    handle: str
    team_id: str
    is_bot: bool
    is_deactivated: bool
    in_directory: bool = True


@dataclass(frozen=True)
class ChannelRow:
    """A channel as stored."""

    channel_id: str
    name: str
    kind: str
    is_archived: bool
    purpose: str


@dataclass
class Listing:
    """The entries of the directory files, gathered part by part."""

    source: Source
    people: dict[str, Person] = field(default_factory=dict)
    handles: dict[str, str] = field(default_factory=dict)
    channels: dict[str, Channel] = field(default_factory=dict)
    purposes: dict[str, str] = field(default_factory=dict)
    # Channels whose entry tells its members; one that does not keeps those that are stored.
    members: dict[str, tuple[str, ...]] = field(default_factory=dict)
    former_names: dict[str, str] = field(default_factory=dict)
    unreadable: int = 0
    _ids: dict[str, str] = field(default_factory=dict)

    def add(self, file: DirectoryFile, records: Iterable[bytes]) -> None:
        """Take entries of one file; one that is no entry is counted and left out."""
        for raw in records:
            entry = _entry(raw)
            if self.source is Source.SYNTHETIC:
                entry = _like_slack(entry, file)
            added = (
                self._add_person(entry)
                if file is DirectoryFile.USERS
                else self._add_channel(entry, _KINDS[file])
            )
            self.unreadable += not added

    def person_rows(self) -> list[PersonRow]:
        """The people as stored."""
        return [
            PersonRow(
                person.person_id,
                person.display_name,
                person.real_name,
                self.handles[person.person_id],
                person.team_id,
                person.is_bot,
                person.is_deleted,
            )
            for person in self.people.values()
        ]

    def channel_rows(self, directory: Directory) -> list[ChannelRow]:
        """The channels as stored, under the names that readers see."""
        return [
            ChannelRow(
                channel.channel_id,
                channel_display_name(channel, directory),
                channel.kind,
                channel.is_archived,
                self.purposes[channel.channel_id],
            )
            for channel in self.channels.values()
        ]

    def _add_person(self, entry: Mapping[str, object]) -> bool:
        person = read_person(entry)
        if person is None:
            return False
        self.people[person.person_id] = person
        self.handles[person.person_id] = _text(entry.get("name"))
        return True

    def _add_channel(self, entry: Mapping[str, object], kind: ChannelKind) -> bool:
        # Some tools list every conversation in channels.json: what says it is private, is.
        if kind is ChannelKind.PUBLIC and entry.get("is_private") is True:
            kind = ChannelKind.PRIVATE
        channel = read_channel(entry, kind)
        if channel is None:
            return False
        self.channels[channel.channel_id] = channel
        self.purposes[channel.channel_id] = _value(entry.get("purpose")) or _value(
            entry.get("topic")
        )
        if "members" in entry:
            # A member stands in many channels: one string each keeps a large workspace small.
            ids = (self._ids.setdefault(member, member) for member in channel.member_ids)
            self.members[channel.channel_id] = tuple(dict.fromkeys(ids))
        former = entry.get("previous_names")
        for name in former if isinstance(former, list) else []:
            self.former_names[folder_key(_text(name))] = channel.channel_id
        return True


class Folders:
    """Finds the channel of a folder: by id, by current name, by former name, by stored name."""

    def __init__(self, listing: Listing, stored: Iterable[ChannelRow]) -> None:
        self._ids: dict[str, str] = {}
        for channel in stored:
            self._ids[folder_key(channel.name)] = channel.channel_id
            self._ids[folder_key(channel.channel_id)] = channel.channel_id
        self._ids |= listing.former_names
        for listed in listing.channels.values():
            if listed.name:
                self._ids[folder_key(listed.name)] = listed.channel_id
        for channel_id in listing.channels:
            self._ids[folder_key(channel_id)] = channel_id

    def channel_id(self, folder: str) -> str | None:
        """The channel's id, or None when nothing lists the folder."""
        return self._ids.get(folder_key(folder))

    def add(self, folder: str, channel_id: str) -> None:
        """Remember the channel made for an unlisted folder."""
        self._ids[folder_key(folder)] = channel_id


def folder_key(name: str) -> str:
    """Composed Unicode: some systems store folder names decomposed."""
    return unicodedata.normalize("NFC", one_line(name))


def team_of_records(records: Iterable[bytes]) -> str:
    """The most frequent ``team`` of raw messages; of equals the smallest; empty without one."""
    counts = Counter(
        team for raw in records if (team := storable_id(_text(_entry(raw).get("team"))))
    )
    return min(counts, key=lambda team: (-counts[team], team), default="")


def _like_slack(entry: Mapping[str, object], file: DirectoryFile) -> dict[str, object]:
    """A JSON-lines entry in Slack's shape: there a channel's or person's id is its name."""
    name = entry.get("name")
    if file is DirectoryFile.USERS:
        return {"id": name, "real_name": name, "name": entry.get("id"), "is_bot": entry.get("bot")}
    return {**entry, "id": name, "is_private": entry.get("private")}


def _entry(raw: bytes) -> Mapping[str, object]:
    try:
        entry = decode_json(raw)
    except ValueError:
        return {}
    return entry if isinstance(entry, dict) else {}


def _value(field_: object) -> str:
    """A purpose or topic: a text, or Slack's object around one."""
    return _text(field_.get("value")) if isinstance(field_, dict) else _text(field_)


def _text(value: object) -> str:
    return storable(value).strip() if isinstance(value, str) else ""
