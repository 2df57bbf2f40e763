"""The Slack of a workspace, with its app's token; rotates the token when that duty falls here."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import aiohttp
import grpc
import structlog
from slack_sdk.errors import SlackClientError
from slack_sdk.web.async_client import AsyncWebClient

from services.ingest.lease_token import Lease, lease_token
from services.ingest.resources import Resources
from services.ingest.save_rotated_token import RotatedToken, save_rotated_token
from services.ingest.slack_history import SlackHistory
from services.ingest.slack_settings import SlackSettings
from services.runtime.errors import CallError

# Longer than Slack takes for a page of 999 messages.
CALL_SECONDS = 30

log = structlog.get_logger("slack")


class SlackDoor:
    """Opens the Slack of any workspace over one HTTP session."""

    def __init__(
        self, resources: Resources, settings: SlackSettings, session: aiohttp.ClientSession
    ) -> None:
        self._resources = resources
        self._settings = settings
        self._session = session

    async def open(self, workspace_id: str) -> SlackHistory | None:
        """A workspace's Slack; None when no app is installed there. Raises CallError."""
        try:
            lease = await lease_token(
                self._resources, workspace_id, may_rotate=self._settings.can_rotate
            )
        except CallError as error:
            if error.code is grpc.StatusCode.NOT_FOUND:
                return None
            raise
        token = await self._rotated(workspace_id, lease) if lease.refresh_token else ""
        return SlackHistory(self._client(token or lease.bot_token), lease.team_id)

    async def _rotated(self, workspace_id: str, lease: Lease) -> str:
        """The new token; empty when Slack gave none: the old one works for hours still."""
        try:
            answer = await self._client("").oauth_v2_access(
                client_id=self._settings.client_id,
                client_secret=self._settings.client_secret,
                grant_type="refresh_token",
                refresh_token=lease.refresh_token,
            )
        except (SlackClientError, aiohttp.ClientError, TimeoutError, OSError) as error:
            log.warning("token not rotated", workspace_id=workspace_id, error=type(error).__name__)
            return ""
        expires_at = datetime.now(UTC) + timedelta(seconds=int(answer["expires_in"]))
        token = str(answer["access_token"])
        rotated = RotatedToken(token, str(answer["refresh_token"]), expires_at)
        await save_rotated_token(self._resources, workspace_id, rotated)
        return token

    def _client(self, token: str) -> AsyncWebClient:
        # Slack's refusals are answered by the pacing table, not by the client.
        return AsyncWebClient(
            token or None,
            self._settings.api_url,
            CALL_SECONDS,
            session=self._session,
            retry_handlers=[],
        )


def open_session() -> aiohttp.ClientSession:
    """The session for every call; slack-sdk's own limit of time holds for its own sessions only."""
    return aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=CALL_SECONDS))
