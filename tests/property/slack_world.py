"""A Slack of three small workspaces in memory: what people do there, and what Slack says of it.

Everything is decided by what is called, in order: the clock only moves when told. Workspaces share
the ids of their channels, people and messages' ts, so that whatever mixes them up is seen.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from enum import Enum, auto
from typing import Any

Json = dict[str, Any]

TEAMS = ("T0ONE", "T0TWO", "T0THREE")
CHANNELS = ("C0TIDES", "C0BERTHS", "C0CREW")
PEOPLE = ("U0ADA", "U0LIN", "U0SAM")
BOT_USER = "U0RECALL"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
BEGIN_SECONDS = 1_800_000_000


class Tale(Enum):
    """What an event tells of."""

    VERSION = auto()
    DELETED = auto()
    NAMED = auto()
    JOINED = auto()
    LEFT = auto()


@dataclass(frozen=True)
class Version:
    """A message as it was at one time. An empty text: an edit took all its words."""

    text: str
    author_id: str
    edited_ts: str = ""


@dataclass(frozen=True)
class Fact:
    """What an event tells, without Slack's shapes. ``ts`` names a message, ``at_ts`` the event."""

    tale: Tale
    team_id: str
    channel_id: str
    at_ts: str
    ts: str = ""
    version: Version | None = None
    person_id: str = ""


@dataclass(frozen=True)
class Told:
    """An event on its way."""

    event_id: str
    fact: Fact
    event: Json


@dataclass
class Posted:
    """A message of Slack, deleted ones too. ``thread_ts`` is empty outside any thread."""

    ts: str
    version: Version
    thread_ts: str = ""
    is_broadcast: bool = False
    has_preview: bool = False
    is_deleted: bool = False


@dataclass
class Channel:
    """A channel with its messages by ts, oldest first."""

    channel_id: str
    name: str
    messages: dict[str, Posted] = field(default_factory=dict)
    members: set[str] = field(default_factory=lambda: {BOT_USER})

    @property
    def has_bot(self) -> bool:
        """Whether the app is in the channel: Slack tells it of nothing else."""
        return BOT_USER in self.members

    def alive(self) -> list[Posted]:
        """The messages that are not deleted, oldest first."""
        return [message for message in self.messages.values() if not message.is_deleted]

    def replies(self, root_ts: str) -> list[Posted]:
        """The living replies of a thread, oldest first."""
        return [m for m in self.alive() if m.thread_ts == root_ts and m.ts != root_ts]


class World:
    """Acts change it; what the app is told of them waits in ``waiting`` until delivered."""

    def __init__(self) -> None:
        self.seconds = BEGIN_SECONDS
        self.teams = {
            team: {c: Channel(c, c.lower().removeprefix("c0")) for c in CHANNELS} for team in TEAMS
        }
        self.waiting: list[Told] = []
        self.sent: list[Told] = []
        self._count = 0

    @property
    def now(self) -> datetime:
        """The world's clock."""
        return EPOCH + timedelta(seconds=self.seconds)

    def channel(self, team_id: str, channel_id: str) -> Channel:
        """One channel."""
        return self.teams[team_id][channel_id]

    def channels(self) -> Iterator[tuple[str, Channel]]:
        """Every channel with its team."""
        for team_id, channels in self.teams.items():
            for channel in channels.values():
                yield team_id, channel

    # Acts -------------------------------------------------------------------------------------

    def post(
        self, team_id: str, channel_id: str, author_id: str, root: Posted | None = None,
        *, is_broadcast: bool = False,
    ) -> Posted:  # fmt: skip
        """A new message, or a reply to a root; with a word of its own."""
        channel = self.channel(team_id, channel_id)
        ts = self.tick()
        thread_ts = (root.thread_ts or root.ts) if root else ""
        made = Posted(ts, Version(self._words(), author_id), thread_ts, is_broadcast)
        channel.messages[ts] = made
        self._tell_version(team_id, channel, made, {})
        if root is not None:
            self._tell_of_reply(team_id, channel, thread_ts)
        return made

    def edit(self, team_id: str, channel_id: str, message: Posted, *, is_blank: bool) -> None:
        """New words, or none at all."""
        channel = self.channel(team_id, channel_id)
        before = row_of(channel, message)
        words = "" if is_blank else self._words()
        message.version = replace(message.version, text=words, edited_ts=self.tick())
        self._tell_version(team_id, channel, message, before)

    def unfurl(self, team_id: str, channel_id: str, message: Posted) -> None:
        """Slack shows what a link of the message leads to."""
        channel = self.channel(team_id, channel_id)
        before = row_of(channel, message)
        message.has_preview = True
        self.tick()
        self._tell_version(team_id, channel, message, before)

    def delete(self, team_id: str, channel_id: str, message: Posted, shape: int) -> None:
        """Gone for good; Slack says so in one of three shapes."""
        channel = self.channel(team_id, channel_id)
        before = row_of(channel, message)
        message.is_deleted = True
        at = self.tick()
        fact = Fact(Tale.DELETED, team_id, channel_id, at, message.ts)
        self._tell(channel, fact, deletion_event(channel_id, message, before, at, shape))

    def rename(self, team_id: str, channel_id: str) -> None:
        """A new name for a channel."""
        channel = self.channel(team_id, channel_id)
        channel.name = f"name{self._next()}"
        at = self.tick()
        event = {
            "type": "channel_rename", "event_ts": at,
            "channel": {"id": channel_id, "name": channel.name, "is_channel": True},
        }  # fmt: skip
        self._tell(channel, Fact(Tale.NAMED, team_id, channel_id, at), event)

    def come_or_go(self, team_id: str, channel_id: str, person_id: str) -> None:
        """Somebody joins, or leaves when they are in; of the app itself Slack tells the same."""
        channel = self.channel(team_id, channel_id)
        joins = person_id not in channel.members
        at = self.tick()
        kind, tale = ("joined", Tale.JOINED) if joins else ("left", Tale.LEFT)
        event = {
            "type": f"member_{kind}_channel", "user": person_id, "channel": channel_id,
            "channel_type": "C", "team": team_id, "event_ts": at,
        }  # fmt: skip
        fact = Fact(tale, team_id, channel_id, at, person_id=person_id)
        if joins:
            channel.members.add(person_id)
            self._tell(channel, fact, event)
        else:
            self._tell(channel, fact, event)
            channel.members.discard(person_id)

    def tick(self, seconds: int = 1) -> str:
        """Time passes; the ts of now."""
        self.seconds += seconds
        return f"{self.seconds}.000100"

    # Words ------------------------------------------------------------------------------------

    def _words(self) -> str:
        number = self._next()
        # One word that no other version of any message has, and words that many have.
        return f"w{number}x harbour tide{number % 5} <https://ex.test/{number % 3}>"

    def _next(self) -> int:
        self._count += 1
        return self._count

    def _tell_version(self, team_id: str, channel: Channel, message: Posted, before: Json) -> None:
        at = f"{self.seconds}.000100"
        event = version_event(channel, message, before, at)
        fact = Fact(Tale.VERSION, team_id, channel.channel_id, at, message.ts, message.version)
        self._tell(channel, fact, event)

    def _tell_of_reply(self, team_id: str, channel: Channel, root_ts: str) -> None:
        """The root's own event with its new numbers."""
        root = channel.messages[root_ts]
        if not root.is_deleted:
            before = row_of(channel, root) | {"reply_count": 0}
            self._tell_version(team_id, channel, root, before)

    def _tell(self, channel: Channel, fact: Fact, event: Json) -> None:
        if channel.has_bot:
            self.waiting.append(Told(f"Ev{self._next():06}", fact, event))


def name_of(person_id: str) -> str:
    """What a person is called."""
    return person_id.removeprefix("U0").title()


def row_of(channel: Channel, message: Posted) -> Json:
    """A message as history and events show it."""
    replies = channel.replies(message.ts)
    if message.is_deleted:
        return _tombstone(message, len(replies))
    row: Json = {
        "type": "message", "user": message.version.author_id, "ts": message.ts,
        "text": message.version.text,
    }  # fmt: skip
    if message.version.edited_ts:
        row["edited"] = {"user": message.version.author_id, "ts": message.version.edited_ts}
    if message.has_preview:
        row["attachments"] = [{"from_url": "https://ex.test/0", "title": "A page"}]
    if message.is_broadcast:
        row["subtype"] = "thread_broadcast"
    if message.thread_ts:
        row["thread_ts"] = message.thread_ts
    elif replies:
        row |= {
            "thread_ts": message.ts, "reply_count": len(replies), "latest_reply": replies[-1].ts
        }  # fmt: skip
    return row


def version_event(channel: Channel, message: Posted, before: Json, at: str) -> Json:
    """The event of a new message, or of a change to one."""
    row = row_of(channel, message)
    place = {"channel": channel.channel_id, "channel_type": "channel", "event_ts": at}
    if not before:
        return row | place
    change = {"type": "message", "subtype": "message_changed", "hidden": True, "ts": at}
    return change | place | {"message": row, "previous_message": before}


def deletion_event(channel_id: str, message: Posted, before: Json, at: str, shape: int) -> Json:
    """A deletion as Slack tells it: by ts, by the former message alone, or as a tombstone."""
    event: Json = {
        "type": "message", "hidden": True, "channel": channel_id, "channel_type": "channel",
        "ts": at, "event_ts": at, "previous_message": before,
    }  # fmt: skip
    if shape == 0:
        return event | {"subtype": "message_deleted", "deleted_ts": message.ts}
    if shape == 1:
        return event | {"subtype": "message_deleted"}
    return event | {"subtype": "message_changed", "message": _tombstone(message, 1)}


def _tombstone(message: Posted, replies: int) -> Json:
    return {
        "type": "message", "subtype": "tombstone", "user": "USLACKBOT", "hidden": True,
        "text": "This message was deleted.", "ts": message.ts,
        "thread_ts": message.thread_ts or message.ts, "reply_count": replies,
    }  # fmt: skip
