"""What people and Slack do; each act sends the events that Slack would."""

from __future__ import annotations

from collections.abc import Sequence

from tests.fakes.slack_server import acts, events
from tests.fakes.slack_server.control_base import ControlBase
from tests.fakes.slack_server.identifiers import derived_id, is_ts
from tests.fakes.slack_server.messages import (
    Change,
    Draft,
    edit_message,
    find_message,
    unfurl_message,
)
from tests.fakes.slack_server.state import Channel, ControlError, Json, Message, User


class ActsControl(ControlBase):
    """Posting, editing, deleting, coming and going, and what happens to channels."""

    def post(
        self,
        channel: str,
        user: str,
        text: str,
        *,
        thread: str = "",
        broadcast: bool = False,
        subtype: str = "",
        ts: str = "",
        team: str = "",
        files: Sequence[Json] = (),
        attachments: Sequence[Json] = (),
        blocks: Sequence[Json] = (),
        silent: bool = False,
    ) -> Message:
        """A person's message; ``ts`` back-dates it, ``silent`` sends no event.

        Files make it a ``file_share``, ``broadcast`` in a thread a ``thread_broadcast``.
        """
        place, author = self._place_and_person(channel, user, team)
        if ts and (not is_ts(ts) or ts in place.messages):
            raise ControlError(f"ts {ts!r} is taken or not like 1700000000.000100.")
        draft = Draft(
            author.user_id,
            text,
            thread=thread,
            broadcast=broadcast,
            subtype=subtype or ("bot_message" if author.bot_id else ""),
            bot_id=author.bot_id,
            username=author.name if author.bot_id else "",
            team=author.team_id,
            client_msg_id="" if author.bot_id else self.world.token(32),
            lists={"files": list(files), "attachments": list(attachments), "blocks": list(blocks)},
        )
        return acts.post(self.world, place, draft, ts, silent=silent)

    def edit(self, channel: str, ts: str, text: str, *, user: str = "", team: str = "") -> Message:
        """The author's (or ``user``'s) edit."""
        place = self.find_channel(channel, team)
        editor = find_message(place, ts).user
        if user:
            editor = self._place_and_person(channel, user, team)[1].user_id
        stamp = {"user": editor, "ts": self.world.event_ts()}
        return self._changed(place, edit_message(self.world.slack, place, ts, text, stamp))

    def unfurl(self, channel: str, ts: str, url: str, text: str, *, team: str = "") -> Message:
        """A link preview: ``message_changed`` without ``edited``."""
        place = self.find_channel(channel, team)
        return self._changed(place, unfurl_message(self.world.slack, place, ts, url, text))

    def _changed(self, channel: Channel, change: Change) -> Message:
        acts.announce_change(self.world, channel, change)
        return channel.messages[change.ts]

    def delete(self, channel: str, ts: str, *, team: str = "") -> None:
        """Delete a message; a root with replies becomes a tombstone."""
        acts.delete(self.world, self.find_channel(channel, team), ts)

    def join(self, channel: str, user: str, *, team: str = "") -> None:
        """Somebody, or the app's bot, joins."""
        acts.join(self.world, *self._place_and_person(channel, user, team))

    def leave(self, channel: str, user: str, *, team: str = "") -> None:
        """Somebody leaves or is removed."""
        acts.leave(self.world, *self._place_and_person(channel, user, team))

    def _place_and_person(self, channel: str, user: str, team: str) -> tuple[Channel, User]:
        """People of another workspace are named by id, or by name once they are in."""
        place = self.find_channel(channel, team)
        return place, self.find_user(user, team or place.team_id)

    def rename_channel(self, channel: str, name: str, *, team: str = "") -> Channel:
        """``channel_rename`` or ``group_rename``."""
        place = self.find_channel(channel, team)
        place.previous_names.append(place.name)
        place.name = name
        self._publish(place, events.renamed_event(place, self.world.event_ts()))
        return place

    def archive_channel(self, channel: str, *, team: str = "") -> None:
        """``channel_archive`` or ``group_archive``."""
        self._set_archived(self.find_channel(channel, team), True)

    def unarchive_channel(self, channel: str, *, team: str = "") -> None:
        """``channel_unarchive`` or ``group_unarchive``."""
        self._set_archived(self.find_channel(channel, team), False)

    def _set_archived(self, channel: Channel, archived: bool) -> None:
        channel.archived = archived
        actor = channel.members[0] if channel.members else ""
        self._publish(channel, events.archived_event(channel, actor, self.world.event_ts()))

    def delete_channel(self, channel: str, *, team: str = "") -> None:
        """``channel_deleted`` or ``group_deleted``; the channel is gone."""
        place = self.find_channel(channel, team)
        actor = place.members[0] if place.members else ""
        deleted = events.channel_deleted_event(place, actor, self.world.event_ts())
        self._publish(place, deleted)
        del self.world.slack.channels[place.channel_id]

    def change_channel_id(self, channel: str, new_id: str = "", *, team: str = "") -> Channel:
        """``channel_id_changed``; by default to an id derived from the old one."""
        place = self.find_channel(channel, team)
        old_id, chosen = place.channel_id, new_id or derived_id("C", place.channel_id)
        del self.world.slack.channels[old_id]
        place.channel_id = chosen
        self.world.slack.channels[chosen] = place
        changed = events.id_changed_event(old_id, chosen, self.world.event_ts())
        self._publish(place, changed)
        return place

    def share_channel(self, channel: str, with_team: str, *, team: str = "") -> None:
        """Slack Connect: another workspace's people may join from now on."""
        place, other = self.find_channel(channel, team), self.find_team(with_team)
        place.shared_with.append(other.team_id)
        shared = events.shared_event(place, other.team_id, self.world.event_ts())
        self._publish(place, shared)

    def unshare_channel(self, channel: str, with_team: str, *, team: str = "") -> None:
        """The other workspace's people are out."""
        place, other = self.find_channel(channel, team), self.find_team(with_team)
        if other.team_id not in place.shared_with:
            raise ControlError(f"{place.name} is not shared with {other.name}.")
        place.shared_with.remove(other.team_id)
        people = self.world.slack.users
        place.members = [m for m in place.members if people[m].team_id != other.team_id]
        unshared = events.unshared_event(place, other.team_id, self.world.event_ts())
        self._publish(place, unshared)

    def _publish(self, channel: Channel, event: Json) -> None:
        """A public channel's fate is told to every bot of its workspace."""
        self.world.publish(channel, event, members_only=channel.is_private)

    def change_user(self, user: str, *, name: str = "", title: str = "", team: str = "") -> User:
        """``user_change`` with a new name or title."""
        person = self.find_user(user, team)
        person.name, person.title = name or person.name, title or person.title
        return self._user_changed(person)

    def deactivate_user(self, user: str, *, team: str = "") -> User:
        """``user_change`` with ``deleted``; the person is in no channel any more."""
        person = self.find_user(user, team)
        person.deleted = True
        for channel in self.world.slack.channels.values():
            if person.user_id in channel.members:
                channel.members.remove(person.user_id)
        return self._user_changed(person)

    def _user_changed(self, person: User) -> User:
        person.updated = int(self.world.now())
        changed = events.user_event("user_change", person, self.world.event_ts())
        self.world.publish_to_team(person.team_id, changed)
        return person

    def uninstall(self, *, team: str = "") -> None:
        """``tokens_revoked`` and ``app_uninstalled``."""
        home = self.find_team(team)
        acts.uninstall(self.world, self.find_installation(team), home.team_id)

    def revoke_tokens(self, *, team: str = "") -> None:
        """``tokens_revoked`` alone."""
        home = self.find_team(team)
        acts.revoke(self.world, self.find_installation(team), home.team_id)
