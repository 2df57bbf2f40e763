"""What is read of Slack: history, replies, people and channels, each answer a value.

A thin layer over slack-sdk. No refusal of Slack is an exception here: it is a ``Refusal`` that says
what can be done about it. Only a Slack that can not be reached at all raises.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

import aiohttp
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from recall.error.v1 import error_pb2
from services.ingest.blocks import Json, dicts, string
from services.ingest.pacing import CHANNEL, CHANNELS, HISTORY, PEOPLE, REPLIES
from services.runtime.errors import CallError, unavailable

# Slack's recommendation for listings.
LISTED_AT_ONCE = 200
UNREACHABLE_RETRY_SECONDS = 30.0


class Remedy(Enum):
    """What can be done about a call that Slack refused."""

    # Call the same method again after some time; others go on.
    WAIT = auto()
    # This one page: try again later. Others go on.
    RETRY = auto()
    # Go on by ts: the cursor is no longer known.
    RESUME = auto()
    # Nothing: the app is not in the channel, or it is gone.
    LEAVE = auto()
    # Nothing: the thread is gone.
    FORGET = auto()
    # Nothing, for no channel: the token is no longer valid.
    STOP = auto()


_REMEDIES = {
    "ratelimited": Remedy.WAIT,
    "rate_limited": Remedy.WAIT,
    "invalid_cursor": Remedy.RESUME,
    "not_in_channel": Remedy.LEAVE,
    "channel_not_found": Remedy.LEAVE,
    "thread_not_found": Remedy.FORGET,
    "message_not_found": Remedy.FORGET,
    "token_revoked": Remedy.STOP,
    "account_inactive": Remedy.STOP,
    "invalid_auth": Remedy.STOP,
    "not_authed": Remedy.STOP,
    "access_denied": Remedy.STOP,
    "org_login_required": Remedy.STOP,
    "team_access_not_granted": Remedy.STOP,
}


@dataclass(frozen=True)
class Refusal:
    """A call without a result. ``error`` is Slack's code, or what came instead of an answer."""

    remedy: Remedy
    error: str
    retry_after_seconds: float | None = None


@dataclass(frozen=True)
class Page:
    """Rows as Slack gives them. ``next_cursor`` is empty where Slack gives none."""

    rows: Sequence[Json]
    has_more: bool
    next_cursor: str = ""


@dataclass(frozen=True)
class Span:
    """Which rows are asked for: after a cursor, or between two ts that are left out themselves."""

    limit: int
    cursor: str = ""
    latest_ts: str = ""
    oldest_ts: str = ""

    @property
    def parameters(self) -> dict[str, str]:
        """As Slack takes them; the bounds stay the same from page to page of one cursor."""
        given = {
            "limit": str(self.limit),
            "cursor": self.cursor,
            "latest": self.latest_ts,
            "oldest": self.oldest_ts,
        }
        return {name: value for name, value in given.items() if value}


class SlackHistory:
    """One workspace's Slack, as its app's bot reads it."""

    def __init__(self, client: AsyncWebClient, team_id: str) -> None:
        self._client = client
        self._team_id = team_id

    async def read_messages(self, channel_id: str, span: Span) -> Page | Refusal:
        """A page of a channel, newest first; of threads their roots only."""
        return await self._page(HISTORY, "messages", {"channel": channel_id, **span.parameters})

    async def read_replies(self, channel_id: str, root_ts: str, span: Span) -> Page | Refusal:
        """A page of a thread, oldest first; the root stands first on each."""
        parameters = {"channel": channel_id, "ts": root_ts, **span.parameters}
        return await self._page(REPLIES, "messages", parameters)

    async def list_people(self, cursor: str) -> Page | Refusal:
        """A page of the workspace's people."""
        return await self._page(PEOPLE, "members", self._listing(cursor))

    async def list_channels(self, cursor: str) -> Page | Refusal:
        """A page of the channels that the app is in, private ones too; no direct messages."""
        kinds = {"types": "public_channel,private_channel"}
        return await self._page(CHANNELS, "channels", self._listing(cursor) | kinds)

    async def read_channel(self, channel_id: str) -> Json | Refusal:
        """What Slack says about one channel."""
        body = await self._call(CHANNEL, {"channel": channel_id})
        if isinstance(body, Refusal):
            return body
        described = body.get("channel")
        return described if isinstance(described, dict) else _unreadable()

    def _listing(self, cursor: str) -> dict[str, str]:
        # An app that a whole organisation installed must say whose rows it wants.
        span = Span(LISTED_AT_ONCE, cursor)
        return {"team_id": self._team_id, **span.parameters}

    async def _page(self, method: str, rows: str, parameters: dict[str, str]) -> Page | Refusal:
        body = await self._call(method, parameters)
        if isinstance(body, Refusal):
            return body
        if not isinstance(body.get(rows), list):
            return _unreadable()
        metadata = body.get("response_metadata")
        cursor = string(metadata.get("next_cursor")) if isinstance(metadata, dict) else ""
        return Page(dicts(body[rows]), bool(cursor) or body.get("has_more") is True, cursor)

    async def _call(self, method: str, parameters: dict[str, str]) -> Mapping[str, Any] | Refusal:
        try:
            response = await self._client.api_call(method, http_verb="GET", params=parameters)
        except SlackApiError as error:
            return _refusal(error.response)
        except aiohttp.ClientConnectorError as error:
            raise _unreachable(error) from None
        except (TimeoutError, aiohttp.ClientError, OSError) as error:
            return Refusal(Remedy.RETRY, f"connection broke ({type(error).__name__})")
        except (AttributeError, ValueError):
            # slack-sdk takes a text, or a JSON value that is no object, for an answer.
            return _unreadable()
        return response.data if isinstance(response.data, dict) else _unreadable()


def _refusal(response: Any) -> Refusal:
    """Of slack-sdk's response, or of aiohttp's own where the body was no JSON."""
    status = getattr(response, "status_code", None) or getattr(response, "status", 0)
    data = getattr(response, "data", None)
    code = string(data.get("error")) if isinstance(data, dict) else ""
    if status == 429:
        return Refusal(Remedy.WAIT, code or "ratelimited", _retry_after(response.headers))
    if not code:
        return Refusal(Remedy.RETRY, f"HTTP {status}" if status != 200 else "no JSON")
    return Refusal(_REMEDIES.get(code, Remedy.RETRY), code)


def _retry_after(headers: Mapping[str, str]) -> float | None:
    told = headers.get("Retry-After", "").strip()
    return float(told) if told.isascii() and told.isdigit() else None


def _unreadable() -> Refusal:
    return Refusal(Remedy.RETRY, "an answer of another shape")


def _unreachable(error: aiohttp.ClientConnectorError) -> CallError:
    return unavailable(
        error_pb2.ERROR_REASON_STAGE_UNAVAILABLE,
        f"Slack can not be reached ({type(error).__name__}). Reading goes on when it answers.",
        UNREACHABLE_RETRY_SECONDS,
    )
