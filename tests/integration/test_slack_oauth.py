"""Installing the app in a browser that follows every redirect."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from dataclasses import dataclass

import httpx
import pytest

from services.gateway.config import SlackSettings
from services.gateway.directory import Directory
from services.gateway.http import Demo, create_app
from services.gateway.http_server import serving_http
from services.gateway.slack.oauth import OTHER_BROWSER, Installer, oauth_routes
from services.runtime.callers import Callers
from services.runtime.server import Listener
from tests.conftest import free_port
from tests.fakes.slack_server import SlackServer
from tests.fakes.slack_server.control import SlackControl
from tests.scripted_slack import ScriptedSlackIngest, SlackScript
from tests.scripted_stages import ScriptedRetrieve, served


@dataclass
class Install:
    """A Slack, the app's own pages, and what was stored."""

    control: SlackControl
    ingest: ScriptedSlackIngest
    url: str
    team_id: str

    def browser(self) -> httpx.AsyncClient:
        return httpx.AsyncClient(base_url=self.url, follow_redirects=True)

    async def callback_of(self, browser: httpx.AsyncClient) -> str:
        """Begin, allow, and stop before the way back; its address."""
        begun = await browser.get("/slack/oauth/start", follow_redirects=False)
        allowed = await browser.get(begun.headers["location"], follow_redirects=False)
        return allowed.headers["location"]


@pytest.fixture
async def install(callers: Callers) -> AsyncIterator[Install]:
    """The pages of an installation that nobody has yet."""
    script = SlackScript(ScriptedRetrieve([]))
    async with SlackServer() as slack, served(script, callers) as stages:
        team = slack.control.add_team("Harbour")
        slack.control.add_user("Ines")
        port = free_port()
        url = f"http://127.0.0.1:{port}"
        settings = SlackSettings(
            slack.api_url,
            client_id=slack.app.client_id,
            client_secret=slack.app.client_secret,
            redirect_url=f"{url}/slack/oauth/callback",
        )
        demo = Demo(stages, Directory(stages, time.monotonic), "beacon", time.monotonic)
        routes = oauth_routes(Installer(settings, stages))
        async with serving_http(create_app(demo, routes), Listener("127.0.0.1", port)):
            yield Install(slack.control, script.slack, url, team.team_id)


async def test_two_clicks_install_the_app_and_begin_to_read_history(install: Install) -> None:
    async with install.browser() as browser:
        page = await browser.get("/slack/oauth/start")
    assert (page.status_code, "Recall is installed in Harbour" in page.text) == (200, True)
    (stored,) = install.ingest.installs
    granted = install.control.find_installation("")
    assert (stored.team_id, stored.bot_token) == (install.team_id, granted.access_token)
    assert (stored.bot_user_id, stored.bot_id) == (granted.bot_user_id, granted.bot_id)
    assert stored.url.startswith("https://harbour.slack.com")
    assert not stored.HasField("token_expires_at")
    assert install.ingest.backfills == [install.team_id]


async def test_a_rotating_token_is_kept_with_its_end(install: Install) -> None:
    async with install.browser() as browser:
        begun = await browser.get("/slack/oauth/start", follow_redirects=False)
        await browser.get(begun.headers["location"] + "&rotating=1")
    (stored,) = install.ingest.installs
    assert stored.refresh_token.startswith("xoxe-1-")
    assert stored.token_expires_at.seconds > time.time()


async def test_an_installation_ends_only_in_the_browser_that_began_it(install: Install) -> None:
    async with install.browser() as one, install.browser() as other:
        back = await install.callback_of(one)
        refused = await other.get(back)
        forged = await other.get("/slack/oauth/callback?state=&code=x")
    assert (refused.status_code, refused.text) == (400, OTHER_BROWSER)
    assert forged.status_code == 400
    assert install.ingest.installs == []


async def test_a_state_installs_once(install: Install) -> None:
    async with install.browser() as browser:
        back = await install.callback_of(browser)
        first = await browser.get(back)
        second = await browser.get(back)
    assert (first.status_code, second.status_code) == (200, 400)
    assert len(install.ingest.installs) == 1


async def test_whoever_refuses_at_slack_is_told_that_nothing_was_installed(
    install: Install,
) -> None:
    async with install.browser() as browser:
        begun = await browser.get("/slack/oauth/start", follow_redirects=False)
        page = await browser.get(begun.headers["location"] + "&deny=1")
    assert (page.status_code, "access_denied" in page.text) == (400, True)
    assert install.ingest.installs == []
