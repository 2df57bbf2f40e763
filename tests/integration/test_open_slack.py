"""Rules of opening a workspace's Slack: its token, its rotation, a Slack that is away."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest

from services.ingest.open_slack import SlackDoor, open_session
from services.ingest.resources import Resources
from services.ingest.slack_history import Page, SlackHistory
from services.ingest.slack_settings import SlackSettings
from services.runtime.errors import CallError
from tests.fakes.slack_server import SlackControl, SlackServer
from tests.integration.history_fixtures import WORKSPACE, install
from tests.integration.ingest_fixtures import Rows


@dataclass
class Rotating:
    """A workspace whose token ends in an hour."""

    control: SlackControl
    settings: SlackSettings
    token: str


@pytest.fixture
async def rotating(resources: Resources, rows: Rows) -> AsyncIterator[Rotating]:
    async with SlackServer() as slack:
        slack.control.add_team("Harbour")
        slack.control.add_user("Ines")
        installation = slack.control.install(rotating=True)
        install(rows, installation, resources.tokens.encrypt(installation.access_token))
        rows.execute(
            "UPDATE installations SET refresh_token = %s, token_expires_at = now() + "
            "interval '1 hour'",
            resources.tokens.encrypt(installation.refresh_token),
        )
        app = slack.app
        settings = SlackSettings(slack.api_url, app.client_id, app.client_secret)
        yield Rotating(slack.control, settings, installation.access_token)


async def people(slack: SlackHistory | None) -> Page:
    assert slack is not None
    page = await slack.list_people("")
    assert isinstance(page, Page)
    return page


async def test_a_token_that_ends_soon_is_rotated_once_and_both_are_used(
    rotating: Rotating, resources: Resources, rows: Rows
) -> None:
    async with open_session() as session:
        door = SlackDoor(resources, rotating.settings, session)
        for _ in range(2):
            await people(await door.open(WORKSPACE))
    assert len(rotating.control.calls("oauth.v2.access")) == 1
    stored = resources.tokens.decrypt(rows.one("SELECT bot_token FROM installations"))
    assert stored != rotating.token
    assert rows.one("SELECT token_expires_at > now() + interval '10 hours' FROM installations")


async def test_without_the_app_s_credentials_rotation_is_left_to_others(
    rotating: Rotating, resources: Resources, rows: Rows
) -> None:
    async with open_session() as session:
        door = SlackDoor(resources, SlackSettings(rotating.settings.api_url), session)
        await people(await door.open(WORKSPACE))
    assert rotating.control.calls("oauth.v2.access") == []
    assert rows.one("SELECT refresh_leased_until IS NULL FROM installations")


async def test_a_rotation_that_fails_leaves_the_old_token_in_use(
    rotating: Rotating, resources: Resources
) -> None:
    rotating.control.add_fault("oauth.v2.access", "http")
    async with open_session() as session:
        door = SlackDoor(resources, rotating.settings, session)
        await people(await door.open(WORKSPACE))


async def test_a_workspace_without_an_app_has_no_slack(resources: Resources) -> None:
    async with open_session() as session:
        assert await SlackDoor(resources, SlackSettings(), session).open("nobody") is None


async def test_a_slack_that_is_away_is_nobody_s_fault(
    rotating: Rotating, resources: Resources
) -> None:
    """The job is tried again uncounted; no channel or thread is marked."""
    async with open_session() as session:
        door = SlackDoor(resources, SlackSettings("http://127.0.0.1:9/api/"), session)
        slack = await door.open(WORKSPACE)
        assert slack is not None
        with pytest.raises(CallError) as raised:
            await slack.list_people("")
    assert raised.value.code.name == "UNAVAILABLE"
