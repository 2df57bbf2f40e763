"""Clients of installed apps: a leased token, rotated by whoever is given the duty."""

from __future__ import annotations

import time
from dataclasses import dataclass

import structlog
from google.protobuf.timestamp_pb2 import Timestamp

from recall.ingest.v1 import slack_pb2
from services.gateway.clients import Stages, reach
from services.gateway.config import SlackSettings
from services.gateway.slack.web_api import Bot, SlackClient, SlackError

LEASE_SECONDS = 5.0

log = structlog.get_logger("slack")


@dataclass(frozen=True)
class Installations:
    """Where tokens come from, and what rotates them."""

    stages: Stages
    slack: SlackSettings

    async def client(self, workspace_id: str) -> SlackClient:
        """A client of a workspace's app. Raises CallError NOT_FOUND when there is none."""
        request = slack_pb2.LeaseTokenRequest(workspace_id=workspace_id)
        lease = await reach("ingest", self.stages.installations.LeaseToken, request, LEASE_SECONDS)
        token = lease.bot_token
        if lease.refresh_token:
            token = await self._rotated(workspace_id, lease)
        bot = Bot(lease.team_id, lease.bot_user_id, lease.enterprise_id)
        return SlackClient(token, self.slack.api_url, bot)

    async def _rotated(self, workspace_id: str, lease: slack_pb2.LeaseTokenResponse) -> str:
        """The new token. The old one is used when it can not be had: it works for a while yet."""
        anonymous = SlackClient("", self.slack.api_url, Bot("", ""))
        try:
            given = await anonymous.call(
                "oauth.v2.access",
                client_id=self.slack.client_id,
                client_secret=self.slack.client_secret,
                grant_type="refresh_token",
                refresh_token=lease.refresh_token,
            )
        except SlackError as error:
            log.warning("token not rotated", workspace=workspace_id, cause=str(error))
            return lease.bot_token
        request = slack_pb2.SaveRotatedTokenRequest(
            workspace_id=workspace_id,
            bot_token=str(given["access_token"]),
            refresh_token=str(given.get("refresh_token") or ""),
            token_expires_at=expires_at(given),
        )
        save = self.stages.installations.SaveRotatedToken
        await reach("ingest", save, request, LEASE_SECONDS)
        return request.bot_token


def expires_at(given: dict[str, object]) -> Timestamp | None:
    """When the token of an ``oauth.v2.access`` ends; None when it does not."""
    seconds = given.get("expires_in")
    return Timestamp(seconds=int(time.time()) + seconds) if isinstance(seconds, int) else None
