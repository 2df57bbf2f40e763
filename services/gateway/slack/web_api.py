"""Slack's Web API for one installation, and what a failed call means for whoever made it."""

from __future__ import annotations

import json
import random
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any

import aiohttp
from slack_sdk.errors import SlackApiError, SlackClientError
from slack_sdk.web.async_client import AsyncWebClient
from slack_sdk.web.async_slack_response import AsyncSlackResponse
from slack_sdk.webhook.async_client import AsyncWebhookClient

CALL_SECONDS = 10
PAGE_SIZE = 200
# A 429 that names no time, or none at all, is not asked again at once.
LEAST_RETRY_SECONDS = 1.0

Json = dict[str, Any]


class SlackError(Exception):
    """A call to Slack that failed."""


class SlackRefusedError(SlackError):
    """Slack answered and did nothing; ``code`` is its word, such as ``not_in_channel``."""

    def __init__(self, code: str) -> None:
        super().__init__(f"Slack refused: {code}")
        self.code = code


class SlackBusyError(SlackError):
    """Slack did nothing and asks to wait."""

    def __init__(self, retry_after_seconds: float) -> None:
        super().__init__(f"Slack asks to wait {retry_after_seconds:.0f} s")
        self.retry_after_seconds = retry_after_seconds


class SlackAwayError(SlackError):
    """No usable answer came: whether Slack did anything is not known."""


@dataclass(frozen=True)
class Bot:
    """An installation's identity."""

    team_id: str
    bot_user_id: str
    enterprise_id: str = ""


class SlackClient:
    """Calls as one installation's bot. Every method raises SlackError."""

    def __init__(self, token: str, api_url: str, bot: Bot) -> None:
        # slack-sdk's own retry of a lost connection would post twice.
        self._client = AsyncWebClient(
            token or None, base_url=api_url, timeout=CALL_SECONDS, retry_handlers=[]
        )
        self.bot = bot

    async def call(self, method: str, **arguments: object) -> Json:
        """One call; structures are sent as JSON, what is None is left out."""
        try:
            response = await self._client.api_call(method, data=_form(arguments))
        except SlackApiError as error:
            raise _failure(error.response) from None
        except (SlackClientError, aiohttp.ClientError, TimeoutError, ValueError) as error:
            raise SlackAwayError(f"{method}: {type(error).__name__}") from None
        if not isinstance(response.data, dict):
            raise SlackAwayError(f"{method}: the answer is no JSON object")
        return response.data

    async def pages(self, method: str, rows: str, **arguments: object) -> AsyncIterator[Json]:
        """Every row of a paged method."""
        cursor = ""
        while True:
            page = await self.call(
                method, limit=PAGE_SIZE, cursor=cursor or None, **self._team(), **arguments
            )
            for row in page.get(rows) or ():
                yield row
            cursor = (page.get("response_metadata") or {}).get("next_cursor") or ""
            if not cursor:
                return

    async def respond(self, response_url: str, body: Json) -> None:
        """Answer at a ``response_url``; five times within thirty minutes."""
        webhook = AsyncWebhookClient(response_url, timeout=CALL_SECONDS, retry_handlers=[])
        try:
            reply = await webhook.send_dict(body)
        except (SlackClientError, aiohttp.ClientError, TimeoutError, ValueError) as error:
            raise SlackAwayError(f"response_url: {type(error).__name__}") from None
        if reply.status_code == 429:
            raise SlackBusyError(_retry_after(reply.headers))
        if reply.status_code >= 500:
            raise SlackAwayError(f"response_url: status {reply.status_code}")
        if reply.status_code >= 300:
            raise SlackRefusedError(f"response_url {reply.status_code}")

    def _team(self) -> dict[str, str]:
        # A token of a whole organisation must say for which workspace it lists.
        return {"team_id": self.bot.team_id} if self.bot.enterprise_id else {}


def _form(arguments: Mapping[str, object]) -> dict[str, str]:
    return {name: _field(value) for name, value in arguments.items() if value is not None}


def _field(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _failure(response: object) -> SlackError:
    if not isinstance(response, AsyncSlackResponse) or not isinstance(response.data, dict):
        return SlackAwayError("no usable answer")
    code = str(response.data.get("error") or "")
    if response.status_code == 429 or code == "ratelimited":
        return SlackBusyError(_retry_after(response.headers))
    if response.status_code >= 500 or not code:
        return SlackAwayError(f"status {response.status_code}")
    return SlackRefusedError(code)


def _retry_after(headers: Mapping[str, Any]) -> float:
    given = next((v for name, v in headers.items() if name.lower() == "retry-after"), "")
    value = given[0] if isinstance(given, list) and given else given
    seconds = float(value) if isinstance(value, str) and value.isdigit() else 0.0
    return max(seconds, LEAST_RETRY_SECONDS + random.random())
