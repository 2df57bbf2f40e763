"""Installing the app: to Slack with a one-time state, and back with a code.

The state is also kept in a cookie of the browser that began, so that nobody can finish an
installation that somebody else began.
"""

from __future__ import annotations

import hmac
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import structlog
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from recall.ingest.v1 import ingest_pb2, slack_pb2
from services.gateway.clients import Stages, reach
from services.gateway.config import SlackSettings
from services.gateway.render import http_status
from services.gateway.slack.installations import expires_at
from services.gateway.slack.web_api import Bot, SlackClient, SlackError
from services.runtime.errors import CallError

SCOPES = (
    "app_mentions:read",
    "assistant:write",
    "channels:history",
    "channels:read",
    "chat:write",
    "commands",
    "groups:history",
    "groups:read",
    "im:history",
    "im:read",
    "im:write",
    "team:read",
    "users:read",
)
COOKIE = "recall_install"
COOKIE_SECONDS = 600
STORE_SECONDS = 10.0

DONE = (
    "Recall is installed in {team}. Invite it to a channel with /invite, then try /recall help. "
    "You can close this page."
)
CANCELLED = "Nothing was installed: Slack says “{cause}”. Open /slack/oauth/start to try again."
OTHER_BROWSER = (
    "This installation was not begun in this browser, or more than ten minutes ago. "
    "Open /slack/oauth/start to begin anew."
)

Json = dict[str, Any]

log = structlog.get_logger("oauth")


@dataclass(frozen=True)
class Installer:
    """What installs."""

    slack: SlackSettings
    stages: Stages


class _Pages:
    """The two endpoints that a browser meets."""

    def __init__(self, installer: Installer) -> None:
        self._installer = installer

    async def start(self, request: Request) -> Response:
        """Send the browser to Slack."""
        begin = self._installer.stages.installations.BeginInstall
        try:
            begun = await reach("ingest", begin, slack_pb2.BeginInstallRequest(), STORE_SECONDS)
        except CallError as error:
            return PlainTextResponse(error.message, http_status(error))
        slack = self._installer.slack
        query = {"client_id": slack.client_id, "scope": ",".join(SCOPES), "state": begun.state}
        query |= {"redirect_uri": slack.redirect_url} if slack.redirect_url else {}
        response = RedirectResponse(f"{_authorize_url(slack)}?{urlencode(query)}", 302)
        response.set_cookie(
            COOKIE,
            begun.state,
            max_age=COOKIE_SECONDS,
            path="/slack/oauth",
            httponly=True,
            samesite="lax",
            secure=slack.redirect_url.startswith("https://"),
        )
        return response

    async def callback(self, request: Request) -> Response:
        """Take the browser back, exchange the code, keep the installation."""
        query = request.query_params
        state, code = query.get("state", ""), query.get("code", "")
        kept = request.cookies.get(COOKIE, "")
        if not state or not hmac.compare_digest(state.encode(), kept.encode()):
            return PlainTextResponse(OTHER_BROWSER, 400)
        if not code:
            cause = query.get("error", "no code")[:100]
            return PlainTextResponse(CANCELLED.format(cause=cause), 400)
        try:
            team = await install(self._installer, state, code)
            response = PlainTextResponse(DONE.format(team=team))
        except SlackError as error:
            log.warning("not installed", cause=str(error))
            response = PlainTextResponse(CANCELLED.format(cause=str(error)), 502)
        except CallError as error:
            response = PlainTextResponse(error.message, http_status(error))
        response.delete_cookie(COOKIE, path="/slack/oauth")
        return response


async def install(installer: Installer, state: str, code: str) -> str:
    """Exchange the code, store the installation, begin to read its history; the team's name.

    Raises SlackError and CallError.
    """
    slack = installer.slack
    anonymous = SlackClient("", slack.api_url, Bot("", ""))
    granted = await anonymous.call(
        "oauth.v2.access",
        code=code,
        client_id=slack.client_id,
        client_secret=slack.client_secret,
        redirect_uri=slack.redirect_url or None,
    )
    own = await SlackClient(str(granted["access_token"]), slack.api_url, Bot("", "")).call(
        "auth.test"
    )
    request = _completed(state, granted, own)
    complete = installer.stages.installations.CompleteInstall
    stored = await reach("ingest", complete, request, STORE_SECONDS)
    await start_backfill(installer.stages, stored.workspace_id)
    return request.team_name or request.team_id or "your organisation"


async def start_backfill(stages: Stages, workspace_id: str) -> None:
    """Ask for what may have been missed. New channels are listed, and read from their beginning."""
    request = ingest_pb2.StartBackfillRequest(workspace_id=workspace_id, only_recent=True)
    try:
        await reach("ingest", stages.ingester.StartBackfill, request, STORE_SECONDS)
    except CallError as error:
        log.warning("backfill not started", workspace=workspace_id, cause=error.reason_name)


def oauth_routes(installer: Installer) -> Sequence[Route]:
    """The routes by which people install the app."""
    pages = _Pages(installer)
    return (
        Route("/slack/oauth/start", pages.start),
        Route("/slack/oauth/callback", pages.callback),
    )


def _completed(state: str, granted: Json, own: Json) -> slack_pb2.CompleteInstallRequest:
    team, enterprise = granted.get("team") or {}, granted.get("enterprise") or {}
    return slack_pb2.CompleteInstallRequest(
        state=state,
        team_id=str(team.get("id") or ""),
        team_name=str(team.get("name") or ""),
        enterprise_id=str(enterprise.get("id") or ""),
        is_enterprise_install=bool(granted.get("is_enterprise_install")),
        app_id=str(granted.get("app_id") or ""),
        bot_user_id=str(granted.get("bot_user_id") or ""),
        bot_id=str(own.get("bot_id") or ""),
        url=str(own.get("url") or ""),
        scopes=str(granted.get("scope") or "").split(","),
        bot_token=str(granted["access_token"]),
        refresh_token=str(granted.get("refresh_token") or ""),
        token_expires_at=expires_at(granted),
        installed_by=str((granted.get("authed_user") or {}).get("id") or ""),
    )


def _authorize_url(slack: SlackSettings) -> str:
    return slack.api_url.removesuffix("api/") + "oauth/v2/authorize"
