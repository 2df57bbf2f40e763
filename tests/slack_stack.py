"""A stack whose app lives in a Slack for tests: its settings, and how the app is installed."""

from __future__ import annotations

import httpx
from cryptography.fernet import Fernet

from tests.fakes.slack_server.world import AppIdentity

INSTALL_SECONDS = 30.0


class NotInstalledError(Exception):
    """The app could not be installed; the page that a person would see says why."""


def slack_environment(api_url: str, app: AppIdentity, gateway_port: int) -> dict[str, str]:
    """Settings of a stack whose Slack answers at ``api_url``; its tokens' key is a new one."""
    return {
        "RECALL_SLACK_API_URL": api_url,
        "RECALL_SLACK_SIGNING_SECRET": app.signing_secret,
        "RECALL_SLACK_CLIENT_ID": app.client_id,
        "RECALL_SLACK_CLIENT_SECRET": app.client_secret,
        "RECALL_SLACK_REDIRECT_URL": f"http://127.0.0.1:{gateway_port}/slack/oauth/callback",
        "RECALL_TOKEN_KEY": Fernet.generate_key().decode(),
    }


async def install(gateway_url: str, team_id: str) -> None:
    """Install the app in a team as a person does in a browser. Raises NotInstalledError."""
    async with httpx.AsyncClient(timeout=INSTALL_SECONDS) as browser:
        asked = await browser.get(f"{gateway_url}/slack/oauth/start")
        _require(asked, httpx.codes.FOUND)
        allowed = await browser.get(f"{asked.headers['location']}&team={team_id}")
        _require(allowed, httpx.codes.FOUND)
        _require(await browser.get(allowed.headers["location"]), httpx.codes.OK)


def _require(page: httpx.Response, status: int) -> None:
    if page.status_code != status:
        raise NotInstalledError(f"The app could not be installed: {page.text}")
