"""What Recall must show: a plain account of the jobs that ran, told apart from how they work.

Of each message it keeps the versions that may be stored now. That is one, unless a run was stopped
where nobody knows whether it had taken effect; the same job's next run settles it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from services.corpus import slack_message_id
from tests.property.slack_world import BOT_USER, Fact, Tale, Version

# What may be stored of a message; None: nothing.
States = frozenset[Version | None]
NOTHING: States = frozenset((None,))


@dataclass
class KnownChannel:
    """A channel as its workspace's jobs left it. ``held_ts`` is what purges keep out."""

    messages: dict[str, States] = field(default_factory=dict)
    held_ts: str = ""
    # What had been acknowledged when a purge was asked for: its words went with the jobs that held
    # them, whether or not it had been stored.
    purged: set[str] = field(default_factory=set)
    members: dict[str, str] = field(default_factory=dict)


@dataclass
class Expected:
    """One workspace. ``deleted`` are ts by channel, from the acknowledgement of a deletion on."""

    team_id: str
    channels: dict[str, KnownChannel] = field(default_factory=dict)
    deleted: set[tuple[str, str]] = field(default_factory=set)

    def channel(self, channel_id: str) -> KnownChannel:
        """One channel."""
        return self.channels.setdefault(channel_id, KnownChannel())

    def may_show(self, channel_id: str, ts: str) -> set[Version]:
        """The versions of a message that a reader of its channel may be shown now."""
        if (channel_id, ts) in self.deleted:
            return set()
        states = self.channel(channel_id).messages.get(ts, NOTHING)
        return {version for version in states if version is not None and version.text}

    def must_show(self) -> dict[str, tuple[str, Version]]:
        """Channel and version of every visible message by id; nothing is uncertain."""
        shown = {}
        for channel_id, channel in self.channels.items():
            for ts, states in channel.messages.items():
                assert len(states) == 1, f"{channel_id} {ts} is uncertain: {states}"
                for version in self.may_show(channel_id, ts):
                    shown[self.message_id(channel_id, ts)] = (channel_id, version)
        return shown

    def message_id(self, channel_id: str, ts: str) -> str:
        """A message's id."""
        return slack_message_id(self.team_id, channel_id, ts)

    # What happens ------------------------------------------------------------------------------

    def recorded(self, fact: Fact) -> None:
        """An event was acknowledged: a deletion holds from now on."""
        if fact.tale is Tale.DELETED:
            self.deleted.add((fact.channel_id, fact.ts))

    def handled(self, fact: Fact, *, has_words: bool = True, for_sure: bool = True) -> None:
        """A job took effect, or may have. Without its words it only asks Slack for them."""
        channel = self.channel(fact.channel_id)
        if fact.tale is Tale.DELETED:
            self._set(channel, fact.ts, lambda _: None, for_sure)
        elif fact.tale is Tale.JOINED:
            _joined(channel, fact)
        elif fact.tale is Tale.LEFT:
            _left(channel, fact)
        elif (
            fact.tale is Tale.VERSION
            and has_words
            and fact.version is not None
            and min(fact.at_ts, fact.ts) > channel.held_ts
        ):
            self._wrote(channel, fact, fact.version, for_sure)

    def came_or_went(self, fact: Fact, held_ts: str, joined_ts: str | None) -> None:
        """A coming or going that was stopped had all of its effect or none: what is found says.

        ``held_ts`` and when the person joined, None outside the channel, as they are stored.
        """
        before = self.channel(fact.channel_id)
        after = replace(before, members=dict(before.members))
        if fact.tale is Tale.JOINED:
            _joined(after, fact)
        else:
            _left(after, fact)
        fitting = [
            channel
            for channel in (before, after)
            if (channel.held_ts, channel.members.get(fact.person_id)) == (held_ts, joined_ts)
        ]
        assert fitting, f"{fact} left a hold at {held_ts!r}, joined at {joined_ts!r}"
        self.channels[fact.channel_id] = fitting[0]

    def purged(self, channel_id: str, *, for_sure: bool = True) -> None:
        """A channel's purge ended, or some of it was done."""
        channel = self.channel(channel_id)
        for ts in channel.messages:
            self._set(channel, ts, lambda _: None, for_sure)
        if for_sure:
            channel.members.clear()

    def gone_from_slack(self, channel_id: str, ts: str) -> None:
        """History showed that a message was deleted."""
        self.deleted.add((channel_id, ts))
        self.channel(channel_id).messages[ts] = NOTHING

    def _wrote(self, channel: KnownChannel, fact: Fact, version: Version, for_sure: bool) -> None:
        def newest(before: Version | None) -> Version | None:
            if (fact.channel_id, fact.ts) in self.deleted:
                return before
            if before is None or version.edited_ts >= before.edited_ts:
                return version
            return before

        self._set(channel, fact.ts, newest, for_sure)

    def _set(
        self,
        channel: KnownChannel,
        ts: str,
        change: Callable[[Version | None], Version | None],
        for_sure: bool,
    ) -> None:
        states = channel.messages.get(ts, NOTHING)
        changed = frozenset(change(state) for state in states)
        channel.messages[ts] = changed if for_sure else states | changed


def _joined(channel: KnownChannel, fact: Fact) -> None:
    if fact.person_id == BOT_USER and channel.held_ts < fact.at_ts:
        channel.held_ts = ""
    channel.members[fact.person_id] = max(channel.members.get(fact.person_id, ""), fact.at_ts)


def _left(channel: KnownChannel, fact: Fact) -> None:
    """Not somebody who joined again later."""
    if channel.members.get(fact.person_id, "") <= fact.at_ts:
        channel.members.pop(fact.person_id, None)
        if fact.person_id == BOT_USER:
            channel.held_ts = max(channel.held_ts, fact.at_ts)
