"""Build a workspace; only ``add_user(announce=True)`` sends an event."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tests.fakes.slack_server import acts, events
from tests.fakes.slack_server.control_base import ControlBase
from tests.fakes.slack_server.delivery_settings import Transport
from tests.fakes.slack_server.identifiers import derived_id, domain_of
from tests.fakes.slack_server.methods_people import complete_install, issue_tokens
from tests.fakes.slack_server.state import (
    BOT_SCOPES,
    AuthorizationCode,
    Channel,
    ChannelKind,
    ControlError,
    Installation,
    Team,
    User,
)
from tests.fakes.slack_server.workspace_files import load_workspace

CODE_SECONDS = 600.0


class SetupControl(ControlBase):
    """The operations that make teams, people, channels and installations."""

    def connect(
        self, *, app_url: str = "", events_url: str = "", transport: Transport = "http"
    ) -> None:
        """Say where the app listens; ``events_url`` overrides the one below ``app_url``."""
        addresses, base = self.world.addresses, app_url.rstrip("/")
        addresses.events_url = events_url or f"{base}/slack/events"
        addresses.commands_url = f"{base}/slack/commands"
        addresses.interactions_url = f"{base}/slack/interactions"
        addresses.transport = transport

    def add_team(
        self, name: str, *, team_id: str = "", domain: str = "", enterprise_id: str = ""
    ) -> Team:
        """A workspace; two with one ``enterprise_id`` make an Enterprise Grid."""
        team = Team(team_id or derived_id("T", name), name, domain or domain_of(name))
        team.enterprise_id = enterprise_id
        if team.team_id in self.world.slack.teams:
            raise ControlError(f"There is a workspace {team.team_id} already.")
        self.world.slack.teams[team.team_id] = team
        return team

    def add_user(
        self,
        name: str,
        *,
        team: str = "",
        user_id: str = "",
        title: str = "",
        is_bot: bool = False,
        is_restricted: bool = False,
        announce: bool = False,
    ) -> User:
        """A person, guest (``is_restricted``) or bot; ``announce`` sends ``team_join``."""
        home = self.find_team(team)
        user = User(user_id or derived_id("U", home.team_id, name), home.team_id, name, title)
        user.bot_id = derived_id("B", home.team_id, name) if is_bot else ""
        user.is_restricted, user.updated = is_restricted, int(self.world.now())
        if user.user_id in self.world.slack.users:
            raise ControlError(f"There is a user {user.user_id} ({name}) already.")
        self.world.slack.users[user.user_id] = user
        if announce:
            joined = events.user_event("team_join", user, self.world.event_ts())
            self.world.publish_to_team(home.team_id, joined)
        return user

    def add_channel(
        self,
        name: str,
        *,
        team: str = "",
        channel_id: str = "",
        kind: ChannelKind = "public_channel",
        members: Sequence[str] = (),
        purpose: str = "",
    ) -> Channel:
        """A channel with its members."""
        home = self.find_team(team)
        chosen = channel_id or derived_id("C", home.team_id, name)
        if chosen in self.world.slack.channels:
            raise ControlError(f"There is a channel {chosen} ({name}) already.")
        channel = Channel(chosen, home.team_id, name, kind, purpose=purpose)
        channel.created = int(self.world.now())
        channel.members = [self.find_user(member, home.team_id).user_id for member in members]
        self.world.slack.channels[chosen] = channel
        return channel

    def direct_channel(self, user: str, *, team: str = "") -> Channel:
        """The direct conversation of a person with the app's bot, opened if need be."""
        bot = self.find_installation(team).bot_user_id
        person = self.find_user(user, team)
        home = self.find_team(team)
        return acts.open_direct(self.world, home.team_id, [bot, person.user_id])[0]

    def install(
        self,
        *,
        team: str = "",
        installer: str = "",
        rotating: bool = False,
        enterprise: bool = False,
        scopes: Sequence[str] = BOT_SCOPES,
        access_token: str = "",
    ) -> Installation:
        """Install the app without the OAuth pages; ``access_token`` makes its token known."""
        code = self._code(team, installer, rotating, enterprise, scopes)
        installation = complete_install(self.world, code)
        issue_tokens(self.world, installation, access_token)
        return installation

    def authorize(
        self,
        *,
        team: str = "",
        user: str = "",
        rotating: bool = False,
        enterprise: bool = False,
        scopes: Sequence[str] = BOT_SCOPES,
        redirect_uri: str = "",
    ) -> str:
        """What a person's click on "Allow" gives: a code for ``oauth.v2.access``."""
        code = self._code(team, user, rotating, enterprise, scopes)
        code.redirect_uri = redirect_uri
        self.world.slack.codes[code.code] = code
        return code.code

    def _code(
        self, team: str, user: str, rotating: bool, enterprise: bool, scopes: Sequence[str]
    ) -> AuthorizationCode:
        home = self.find_team(team)
        if enterprise and not home.enterprise_id:
            raise ControlError(f"{home.name} is in no enterprise; give add_team enterprise_id.")
        person = self.find_user(user, home.team_id).user_id if user else ""
        key = home.enterprise_id if enterprise else home.team_id
        bot_user_id, bot_id = self.world.bot_ids(key)
        installation = Installation(
            "" if enterprise else home.team_id,
            home.enterprise_id,
            bot_user_id,
            bot_id,
            person,
            tuple(scopes),
            rotating,
        )
        code = f"{self.world.token(12)}.{self.world.token(32)}"
        return AuthorizationCode(code, installation, "", self.world.now() + CODE_SECONDS)

    def load(
        self, folder: str | Path, *, team: str = "", bot_in: Sequence[str] | None = None
    ) -> dict[str, str]:
        """Load people.json, channels.json and messages.jsonl; the map of their ids to Slack's.

        Messages become ``<channel>:<id>`` → ts. ``bot_in`` names the channels that the
        installed bot is in: by default the public ones.
        """
        home = self.find_team(team)
        installation = self.world.slack.installation_of(home.team_id)
        return load_workspace(
            self.world.slack,
            home,
            Path(folder),
            bot_user_id=installation.bot_user_id if installation else "",
            bot_in=bot_in,
        )
