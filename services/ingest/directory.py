"""People and channels of a workspace, read from the directory files of an export."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from services.ingest.identifiers import storable_id
from services.ingest.markup import one_line, storable

PRIVATE_CHANNEL = "private channel"


class ChannelKind(StrEnum):
    """Directory file that a channel stood in: channels, groups, dms, mpims."""

    PUBLIC = "public"
    PRIVATE = "private"
    DIRECT = "direct"
    GROUP_DIRECT = "group_direct"


@dataclass(frozen=True)
class Person:
    """One entry of users.json. ``bot_id`` is the id under which a bot user's posts appear."""

    person_id: str
    display_name: str
    real_name: str = ""
    team_id: str = ""
    is_bot: bool = False
    is_deleted: bool = False
    bot_id: str = ""


@dataclass(frozen=True)
class Channel:
    """One conversation. ``name`` is empty for a direct message: its name is its members' names."""

    channel_id: str
    name: str
    kind: ChannelKind
    is_archived: bool = False
    member_ids: tuple[str, ...] = ()


@dataclass(frozen=True)
class Directory:
    """Current names by id. Satisfies ``markup.Names``."""

    people: Mapping[str, Person] = field(default_factory=dict)
    channels: Mapping[str, Channel] = field(default_factory=dict)

    def person_name(self, person_id: str) -> str:
        """Current name of a person or bot; empty when unknown."""
        person = self.people.get(person_id)
        if person is not None:
            return person.display_name
        return "Slackbot" if person_id == "USLACKBOT" else ""

    def channel_name(self, channel_id: str) -> str:
        """Current name of a channel as any reader may see it, without ``#``; empty when unknown.

        A mention can be read where the channel it names can not: the name of a channel that is
        not public stays hidden.
        """
        channel = self.channels.get(channel_id)
        if channel is None:
            return ""
        return channel.name if channel.kind is ChannelKind.PUBLIC else PRIVATE_CHANNEL


def read_person(entry: object) -> Person | None:
    """A person from one entry of users.json; None when the entry names no id.

    The name is the first that is set of the profile's display name, the real name, the user name
    and the id.
    """
    if not isinstance(entry, dict) or not _text(entry, "id"):
        return None
    profile = entry.get("profile")
    profile = profile if isinstance(profile, dict) else {}
    person_id = storable_id(_text(entry, "id"))
    real_name = one_line(_text(profile, "real_name") or _text(entry, "real_name"))
    display_name = one_line(_text(profile, "display_name")) or real_name
    display_name = display_name or one_line(_text(entry, "name"))
    return Person(
        person_id=person_id,
        display_name=display_name or person_id,
        real_name=real_name,
        team_id=storable_id(_text(entry, "team_id") or _text(profile, "team")),
        is_bot=entry.get("is_bot") is True or person_id == "USLACKBOT",
        is_deleted=entry.get("deleted") is True,
        bot_id=storable_id(_text(profile, "bot_id")),
    )


def read_channel(entry: object, kind: ChannelKind) -> Channel | None:
    """A channel from one entry of a directory file; None when the entry names no id."""
    if not isinstance(entry, dict) or not _text(entry, "id"):
        return None
    members = entry.get("members")
    members = members if isinstance(members, list) else []
    name = "" if kind is ChannelKind.DIRECT else _text(entry, "name")
    return Channel(
        channel_id=storable_id(_text(entry, "id")),
        name=one_line(name or _text(entry, "name_normalized")),
        kind=kind,
        is_archived=entry.get("is_archived") is True,
        member_ids=tuple(storable_id(member) for member in members if isinstance(member, str)),
    )


def make_directory(people: Iterable[Person], channels: Iterable[Channel]) -> Directory:
    """A directory of the given entries. A bot user is found by its bot id too."""
    by_id: dict[str, Person] = {}
    for person in people:
        if person.bot_id:
            by_id.setdefault(person.bot_id, person)
        by_id[person.person_id] = person
    return Directory(by_id, {channel.channel_id: channel for channel in channels})


def channel_display_name(channel: Channel, names: Directory) -> str:
    """A channel's name; for a conversation without one, its members' names in their order.

    A member whom nobody names stands by id, as an author does.
    """
    if channel.name:
        return channel.name
    members = [names.person_name(member) or member for member in channel.member_ids]
    return ", ".join(members) or channel.channel_id


def archive_team(people: Iterable[Person]) -> str:
    """The workspace's own team: the most frequent team id of its users.json, empty without one.

    Guests of shared channels bring other teams, but never the most. Of equals, the smallest id.
    """
    counts = Counter(person.team_id for person in people if person.team_id)
    return min(counts, key=lambda team: (-counts[team], team), default="")


def _text(entry: Mapping[str, object], key: str) -> str:
    value = entry.get(key)
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        return ""
    return storable(str(value)).strip()
