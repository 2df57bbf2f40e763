"""The Web API of the world, as slack-sdk's client answers: what history is read from.

A page shows what was there when it was asked for; ``meanwhile`` runs before it arrives.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from services.ingest.slack_history import SlackHistory
from tests.property.slack_world import PEOPLE, Channel, Json, World, name_of, row_of

Parameters = Mapping[str, str]


@dataclass
class Response:
    """What the client reads of an answer."""

    data: Json
    status_code: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


async def at_once() -> None:
    """Nothing happens while Slack answers."""


@dataclass
class Pages:
    """Slack's answers. ``troubles`` are refusals to come; ``shown`` every row that was given."""

    world: World
    troubles: list[Response] = field(default_factory=list)
    shown: list[tuple[str, str, Json]] = field(default_factory=list)
    meanwhile: Callable[[], Awaitable[None]] = at_once

    async def open(self, workspace_id: str) -> SlackHistory:
        """The Slack of a workspace, whose id is its team's."""
        client = cast(AsyncWebClient, _Client(self, workspace_id))
        return SlackHistory(client, workspace_id)

    async def answer(self, team_id: str, method: str, parameters: Parameters) -> Response:
        """One call."""
        answers = {
            "conversations.history": self._history,
            "conversations.replies": self._replies,
            "conversations.info": self._info,
            "users.conversations": self._conversations,
            "users.list": self._people,
        }
        if self.troubles:
            return self.troubles.pop()
        response = Response(answers[method](team_id, parameters))
        meanwhile, self.meanwhile = self.meanwhile, at_once
        await meanwhile()
        return response

    def _history(self, team_id: str, parameters: Parameters) -> Json:
        channel = self.world.channel(team_id, parameters["channel"])
        if not channel.has_bot:
            return _error("not_in_channel")
        below = parameters.get("cursor") or parameters.get("latest", "")
        above = parameters.get("oldest", "")
        listed = [
            row
            for row in reversed(_listed(channel))
            if (not below or row["ts"] < below) and (not above or row["ts"] > above)
        ]
        return self._page(team_id, channel, listed, int(parameters["limit"]))

    def _replies(self, team_id: str, parameters: Parameters) -> Json:
        channel = self.world.channel(team_id, parameters["channel"])
        root = channel.messages[parameters["ts"]]
        replies = channel.replies(root.ts)
        if root.is_deleted and not replies:
            return _error("thread_not_found")
        above = parameters.get("cursor") or parameters.get("oldest", "")
        rest = [row_of(channel, reply) for reply in replies if reply.ts > above]
        page = self._page(team_id, channel, rest, int(parameters["limit"]))
        page["messages"].insert(0, row_of(channel, root))
        return page

    def _page(self, team_id: str, channel: Channel, rows: list[Json], limit: int) -> Json:
        page, has_more = rows[:limit], len(rows) > limit
        self.shown += [(team_id, channel.channel_id, row) for row in page]
        cursor = page[-1]["ts"] if has_more else ""
        return {
            "ok": True, "messages": page, "has_more": has_more,
            "response_metadata": {"next_cursor": cursor},
        }  # fmt: skip

    def _info(self, team_id: str, parameters: Parameters) -> Json:
        return {
            "ok": True, "channel": _described(self.world.channel(team_id, parameters["channel"]))
        }  # fmt: skip

    def _conversations(self, team_id: str, _: Parameters) -> Json:
        entries = [_described(c) for c in self.world.teams[team_id].values() if c.has_bot]
        return {"ok": True, "channels": entries}

    def _people(self, team_id: str, _: Parameters) -> Json:
        members = [
            {"id": person, "team_id": team_id, "name": person.lower(),
             "profile": {"display_name": name_of(person)}}
            for person in PEOPLE
        ]  # fmt: skip
        return {"ok": True, "members": members}


@dataclass
class _Client:
    pages: Pages
    team_id: str

    async def api_call(self, method: str, *, http_verb: str, params: Parameters) -> Response:
        """As slack-sdk: a refusal is an exception."""
        response = await self.pages.answer(self.team_id, method, params)
        if response.data.get("ok") is not True:
            refused: Any = SlackApiError
            raise refused(f"{method} was refused", response)
        return response


def rate_limited() -> Response:
    """A 429 that says when to come back."""
    return Response({"ok": False, "error": "ratelimited"}, 429, {"Retry-After": "2"})


def broken() -> Response:
    """An error of Slack's own."""
    return Response({"ok": False, "error": "internal_error"}, 500)


def lost_cursor() -> Response:
    """The cursor is no longer known."""
    return Response({"ok": False, "error": "invalid_cursor"})


def _listed(channel: Channel) -> list[Json]:
    """What a channel shows: no replies but those that are shown to everybody."""
    return [
        row_of(channel, message)
        for message in channel.messages.values()
        if (not message.thread_ts or message.is_broadcast)
        and not (message.is_deleted and (message.is_broadcast or not channel.replies(message.ts)))
    ]


def _described(channel: Channel) -> Json:
    return {
        "id": channel.channel_id, "name": channel.name, "is_channel": True,
        "is_member": channel.has_bot, "is_archived": False, "created": 1_700_000_000,
    }  # fmt: skip


def _error(code: str) -> Json:
    return {"ok": False, "error": code}
