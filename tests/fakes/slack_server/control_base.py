"""Finding things by id or name, for the control operations."""

from __future__ import annotations

from dataclasses import dataclass

from tests.fakes.slack_server.sender import EventSender
from tests.fakes.slack_server.sockets import SocketHub
from tests.fakes.slack_server.state import Channel, ControlError, Installation, Team, User
from tests.fakes.slack_server.world import World


@dataclass
class ControlBase:
    """Raises ControlError, with what exists, for what does not."""

    world: World
    sender: EventSender
    sockets: SocketHub

    def find_team(self, team: str = "") -> Team:
        """A workspace by id or name; "" is the only one."""
        teams = self.world.slack.teams
        if team in teams:
            return teams[team]
        named = [one for one in teams.values() if team in ("", one.name)]
        if len(named) != 1:
            known = ", ".join(one.name for one in teams.values()) or "none; add_team makes one"
            raise ControlError(f"Which workspace is {team!r}? There are: {known}.")
        return named[0]

    def find_user(self, user: str, team: str = "") -> User:
        """A person by id or name; names are looked for in one workspace."""
        if user in self.world.slack.users:
            return self.world.slack.users[user]
        home = self.find_team(team)
        name = user.removeprefix("@")
        for one in self.world.slack.users_of(home.team_id):
            if one.name == name:
                return one
        raise ControlError(f"Nobody in {home.name} is called {user!r}.")

    def find_channel(self, channel: str, team: str = "") -> Channel:
        """A conversation by id or name."""
        if channel in self.world.slack.channels:
            return self.world.slack.channels[channel]
        home = self.find_team(team)
        name = channel.removeprefix("#")
        for one in self.world.slack.channels_of(home.team_id):
            if name and one.name == name:
                return one
        raise ControlError(f"{home.name} has no channel {channel!r}.")

    def find_installation(self, team: str = "") -> Installation:
        """The app's installation that serves a workspace."""
        home = self.find_team(team)
        installation = self.world.slack.installation_of(home.team_id)
        if installation is None:
            raise ControlError(f"The app is not installed in {home.name}; install does that.")
        return installation
