"""One Web API call: who asks, with what, about which conversation."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.fakes.slack_server.paging import Cursor, Page, Row, page_of
from tests.fakes.slack_server.state import (
    Channel,
    ChannelKind,
    Installation,
    Json,
    SlackError,
    Team,
    User,
)
from tests.fakes.slack_server.world import World

Arguments = Mapping[str, Any]
_FALSE = ("", "0", "false", "False", False, 0, None)
_SCOPE_FAMILIES: dict[ChannelKind, str] = {
    "public_channel": "channels",
    "private_channel": "groups",
    "im": "im",
    "mpim": "mpim",
}


@dataclass
class ApiCall:
    """A call with its resolved caller; ``served`` collects the ts of the rows it gave out."""

    world: World
    method: str
    arguments: Arguments
    caller: Installation
    team: Team
    served: list[str] = field(default_factory=list)

    def text(self, name: str) -> str:
        """An argument as text, "" if it is missing."""
        value = self.arguments.get(name, "")
        return "" if value is None else str(value)

    def required(self, name: str) -> str:
        """An argument that Slack insists on."""
        value = self.text(name)
        if not value:
            message = f"[ERROR] missing required field: {name}"
            raise SlackError("invalid_arguments", response_metadata={"messages": [message]})
        return value

    def flag(self, name: str, default: bool = False) -> bool:
        """A yes or no, in any of the spellings a form or JSON body has."""
        return default if name not in self.arguments else self.arguments[name] not in _FALSE

    def number(self, name: str) -> int:
        """A whole number, 0 if it is missing."""
        try:
            return int(self.text(name) or 0)
        except ValueError:
            raise SlackError("invalid_arguments") from None

    def structure(self, name: str) -> Any:
        """A list or object, which a form carries as JSON text; None if it is missing."""
        value = self.arguments.get(name)
        if not isinstance(value, str):
            return value
        try:
            return json.loads(value) if value else None
        except ValueError:
            raise SlackError("invalid_json", argument=name) from None

    def need_scope(self, *scopes: str) -> None:
        """Refuse a token without one of the scopes."""
        if not set(scopes) & set(self.caller.scopes):
            provided = ",".join(self.caller.scopes)
            raise SlackError("missing_scope", needed=scopes[0], provided=provided)

    def need_scope_for(self, channel: Channel, right: str) -> None:
        """Refuse a token without e.g. ``channels:history`` for the kind of a conversation."""
        self.need_scope(f"{_SCOPE_FAMILIES[channel.kind]}:{right}")

    def visible_channel(self, name: str = "channel") -> Channel:
        """The named conversation, if the bot may know of it."""
        channel = self.world.slack.channels.get(self.required(name))
        known = channel and self.team.team_id in (channel.team_id, *channel.shared_with)
        if channel is None or not known or (channel.is_private and not self.is_member(channel)):
            raise SlackError("channel_not_found")
        return channel

    def joined_channel(self, name: str = "channel") -> Channel:
        """The named conversation, if the bot is in it."""
        channel = self.visible_channel(name)
        if not self.is_member(channel):
            raise SlackError("not_in_channel")
        return channel

    def is_member(self, channel: Channel) -> bool:
        """Whether the app's bot is in a conversation."""
        return self.caller.bot_user_id in channel.members

    def known_user(self, name: str = "user") -> User:
        """The named person, if the workspace knows them."""
        user = self.world.slack.users.get(self.required(name))
        if user is None or user not in self.world.slack.users_of(self.team.team_id):
            raise SlackError("user_not_found")
        return user

    def page(
        self,
        rows: list[Row],
        key: Callable[[Row], str],
        *,
        scope: str,
        default_limit: int,
        direction: str = "",
    ) -> Page[Row]:
        """The asked page of sorted rows, as long as the method's cap lets it be."""
        limits = self.world.limits
        limit = limits.page_limit(self.method, self.number("limit"), default_limit)
        start = Cursor(f"{self.method}:{scope}", direction, limits.cursor_epoch)
        return page_of(rows, key, limit, start, self.text("cursor"))


def paged(name: str, rows: list[Any], page: Page[Any]) -> Json:
    """A body with rows and the next cursor, "" at the end."""
    return {name: rows, "response_metadata": {"next_cursor": page.next_cursor}}
