"""The nouns of a Slack, as plain records. Times are epoch seconds; ``ts`` is always text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

Json = dict[str, Any]
ChannelKind = Literal["public_channel", "private_channel", "im", "mpim"]

BOT_SCOPES = (
    "app_mentions:read",
    "assistant:write",
    "channels:history",
    "channels:join",
    "channels:read",
    "chat:write",
    "commands",
    "groups:history",
    "groups:read",
    "im:history",
    "im:read",
    "im:write",
    "mpim:history",
    "mpim:read",
    "mpim:write",
    "team:read",
    "users:read",
)


class SlackError(Exception):
    """An answer ``{"ok": false, "error": code}`` of the Web API, with what else it carries."""

    def __init__(self, code: str, **details: object) -> None:
        super().__init__(code)
        self.code = code
        self.details = details


class ControlError(Exception):
    """A control operation that makes no sense; the text says what to give instead."""


@dataclass
class Team:
    team_id: str
    name: str
    domain: str
    enterprise_id: str = ""


@dataclass
class User:
    """A person or bot. ``team_id`` is the home workspace: another one's for a stranger."""

    user_id: str
    team_id: str
    name: str
    title: str = ""
    bot_id: str = ""
    deleted: bool = False
    is_restricted: bool = False
    is_ultra_restricted: bool = False
    is_admin: bool = False
    is_owner: bool = False
    updated: int = 0


@dataclass
class Message:
    """A message as stored; ``thread_ts`` is "" outside threads and for a root without replies."""

    ts: str
    user: str
    text: str
    subtype: str = ""
    thread_ts: str = ""
    team: str = ""
    bot_id: str = ""
    username: str = ""
    edited: Json | None = None
    metadata: Json | None = None
    blocks: list[Json] = field(default_factory=list)
    attachments: list[Json] = field(default_factory=list)
    files: list[Json] = field(default_factory=list)
    client_msg_id: str = ""


@dataclass
class Channel:
    """A conversation; ``members`` in the order they joined; ``shared_with`` are other teams.

    ``threads`` holds the ts of the replies of each root.
    """

    channel_id: str
    team_id: str
    name: str
    kind: ChannelKind = "public_channel"
    created: int = 0
    purpose: str = ""
    archived: bool = False
    members: list[str] = field(default_factory=list)
    shared_with: list[str] = field(default_factory=list)
    previous_names: list[str] = field(default_factory=list)
    messages: dict[str, Message] = field(default_factory=dict)
    threads: dict[str, list[str]] = field(default_factory=dict)

    @property
    def is_private(self) -> bool:
        return self.kind != "public_channel"


@dataclass
class Ephemeral:
    """A message that one person sees in a channel, kept nowhere in its history."""

    channel_id: str
    user: str
    message: Message


@dataclass
class Installation:
    """The app in one workspace, or with ``team_id`` "" in a whole enterprise.

    ``tokens`` maps every access token ever issued to the time it ends, 0 for never.
    """

    team_id: str
    enterprise_id: str
    bot_user_id: str
    bot_id: str
    installer: str
    scopes: tuple[str, ...]
    rotating: bool
    access_token: str = ""
    refresh_token: str = ""
    tokens: dict[str, float] = field(default_factory=dict)
    used_refresh_tokens: set[str] = field(default_factory=set)
    revoked: bool = False
    uninstalled: bool = False


@dataclass
class AuthorizationCode:
    """What a person's click on "Allow" leaves behind, to be exchanged once."""

    code: str
    installation: Installation
    redirect_uri: str
    expires_at: float
    used: bool = False


@dataclass
class Trigger:
    """A moment at which the app may open a modal, once."""

    trigger_id: str
    team_id: str
    user_id: str
    expires_at: float
    used: bool = False


@dataclass
class ResponseUrl:
    """A place to answer an interaction; ``original_ts`` is the message it came from, if any."""

    key: str
    team_id: str
    channel_id: str
    user_id: str
    expires_at: float
    uses_left: int = 5
    thread_ts: str = ""
    original_ts: str = ""
    uses: int = 0


@dataclass
class View:
    """A modal or Home tab as the app last sent it."""

    view_id: str
    team_id: str
    user_id: str
    kind: str
    body: Json


@dataclass
class ThreadStatus:
    """One call of ``assistant.threads.*``: what the person saw while the app worked."""

    channel_id: str
    thread_ts: str
    method: str
    value: Json


@dataclass
class Slack:
    """Everything that exists. Ids of channels and users are unique over all workspaces."""

    teams: dict[str, Team] = field(default_factory=dict)
    users: dict[str, User] = field(default_factory=dict)
    channels: dict[str, Channel] = field(default_factory=dict)
    installations: list[Installation] = field(default_factory=list)
    codes: dict[str, AuthorizationCode] = field(default_factory=dict)
    triggers: dict[str, Trigger] = field(default_factory=dict)
    response_urls: dict[str, ResponseUrl] = field(default_factory=dict)
    ephemerals: list[Ephemeral] = field(default_factory=list)
    views: dict[str, View] = field(default_factory=dict)
    statuses: list[ThreadStatus] = field(default_factory=list)

    def channels_of(self, team_id: str) -> Iterator[Channel]:
        """The conversations a workspace sees: its own and those shared with it."""
        for channel in self.channels.values():
            if channel.team_id == team_id or team_id in channel.shared_with:
                yield channel

    def users_of(self, team_id: str) -> Iterator[User]:
        """The people a workspace knows: its own and the strangers in its channels."""
        strangers = {member for channel in self.channels_of(team_id) for member in channel.members}
        for user in self.users.values():
            if user.team_id == team_id or user.user_id in strangers:
                yield user

    def installation_of(self, team_id: str) -> Installation | None:
        """The live installation that serves a workspace."""
        enterprise = self.teams[team_id].enterprise_id if team_id in self.teams else ""
        for installation in reversed(self.installations):
            covers = installation.team_id == team_id or (
                not installation.team_id and enterprise == installation.enterprise_id != ""
            )
            if covers and not installation.uninstalled:
                return installation
        return None
