"""What there is to be seen: by a person, in a channel, in the record of calls."""

from __future__ import annotations

from tests.fakes.slack_server.control_base import ControlBase
from tests.fakes.slack_server.messages import top_level
from tests.fakes.slack_server.records import Call
from tests.fakes.slack_server.rendering import (
    channel_json,
    message_json,
    replies_of,
    team_json,
    user_json,
)
from tests.fakes.slack_server.state import Channel, ControlError, Json, Message, User, View


class InspectionControl(ControlBase):
    """Nothing here changes anything."""

    def visible(self, user: str, channel: str, *, thread: str = "", team: str = "") -> list[Json]:
        """What a person sees in a channel, or in one of its threads, in time order.

        Ephemeral messages have ``is_ephemeral: true``; they show where they were posted.
        """
        place = self.find_channel(channel, team)
        person = self.find_user(user, team or place.team_id)
        if not self._may_look(person, place):
            raise ControlError(f"{person.name} can not see {place.name or place.channel_id}.")
        shown = self._thread(place, thread) if thread else top_level(place)
        rows = [message_json(self.world.slack, place, message) for message in shown]
        for entry in self.world.slack.ephemerals:
            mine = (entry.channel_id, entry.user) == (place.channel_id, person.user_id)
            if mine and entry.message.thread_ts == thread:
                body = message_json(self.world.slack, place, entry.message)
                rows.append(body | {"is_ephemeral": True})
        return sorted(rows, key=_ts)

    def _may_look(self, person: User, channel: Channel) -> bool:
        public_here = not channel.is_private and person.team_id == channel.team_id
        guest = person.is_restricted or person.is_ultra_restricted or person.deleted
        return person.user_id in channel.members or (public_here and not guest)

    def _thread(self, channel: Channel, root_ts: str) -> list[Message]:
        if root_ts not in channel.messages:
            raise ControlError(f"{channel.name} has no message {root_ts}.")
        return [channel.messages[root_ts], *replies_of(channel, root_ts)]

    def history(self, channel: str, *, team: str = "") -> list[Json]:
        """Every message of a channel, replies too, in time order."""
        place = self.find_channel(channel, team)
        stored = place.messages.values()
        return sorted((message_json(self.world.slack, place, one) for one in stored), key=_ts)

    def calls(self, method: str = "", *, team: str = "", channel: str = "") -> list[Call]:
        """Web API calls in order, of a method, workspace or channel if given."""
        team_id = self.find_team(team).team_id if team else ""
        channel_id = self.find_channel(channel, team).channel_id if channel else ""
        return [
            call
            for call in self.world.calls
            if method in ("", call.method)
            and team_id in ("", call.team_id)
            and channel_id in ("", call.arguments.get("channel"))
        ]

    def times_served(self, method: str, channel: str, *, team: str = "") -> dict[str, int]:
        """How often each message of a channel was given out by a method, by ts."""
        times: dict[str, int] = {}
        for call in self.calls(method, team=team, channel=channel):
            for ts in call.served:
                times[ts] = times.get(ts, 0) + 1
        return times

    def statuses(self, channel: str = "", *, team: str = "") -> list[Json]:
        """Calls of ``assistant.threads.*`` in order; ``ended_at`` once a post ended a status."""
        channel_id = self.find_channel(channel, team).channel_id if channel else ""
        return [
            {"channel": status.channel_id, "thread_ts": status.thread_ts}
            | {"method": status.method}
            | status.value
            for status in self.world.slack.statuses
            if channel_id in ("", status.channel_id)
        ]

    def views(self, user: str = "", *, team: str = "") -> list[View]:
        """Open modals and published Home tabs, of one person if given."""
        user_id = self.find_user(user, team).user_id if user else ""
        return [view for view in self.world.slack.views.values() if user_id in ("", view.user_id)]

    def response_uses(self, response_url: str) -> int:
        """How many answers a ``response_url`` has taken."""
        key = response_url.partition("/response/")[2]
        place = self.world.slack.response_urls.get(key)
        if place is None:
            raise ControlError(f"No response_url {response_url!r} was given out.")
        return place.uses

    def directory(self, *, team: str = "") -> Json:
        """A workspace with its people, channels and members."""
        home = self.find_team(team)
        installation = self.world.slack.installation_of(home.team_id)
        bot_user_id = installation.bot_user_id if installation else ""
        return {
            "team": team_json(home),
            "bot_user_id": bot_user_id,
            "users": [
                user_json(user, home.team_id) for user in self.world.slack.users_of(home.team_id)
            ],
            "channels": [
                channel_json(channel, home.team_id, bot_user_id)
                | {"members": list(channel.members)}
                for channel in self.world.slack.channels_of(home.team_id)
            ],
        }


def _ts(message: Json) -> str:
    return str(message["ts"])
