"""The Slack for tests: installing, rotating, revoking, scopes, as slack-sdk's own code does it."""

from __future__ import annotations

from slack_sdk.oauth import AuthorizeUrlGenerator
from slack_sdk.oauth.installation_store import Installation
from slack_sdk.oauth.token_rotation.async_rotator import AsyncTokenRotator
from slack_sdk.web.async_client import AsyncWebClient
from slack_sdk.web.async_slack_response import AsyncSlackResponse

from tests.integration.slack_harbour import START_SECONDS, Harbour, error_of, harbour

__all__ = ["harbour"]


async def test_a_code_is_exchanged_once(harbour: Harbour) -> None:
    harbour.control.add_team("Lighthouse")
    app, client = harbour.slack.app, AsyncWebClient(base_url=harbour.slack.api_url)
    code = harbour.control.authorize(team="Lighthouse", redirect_uri="https://app.test/back")

    async def exchange() -> AsyncSlackResponse:
        return await client.oauth_v2_access(
            client_id=app.client_id,
            client_secret=app.client_secret,
            code=code,
            redirect_uri="https://app.test/back",
        )

    token = (await exchange())["access_token"]
    auth = await client.auth_test(token=token)

    assert (auth["team"], token[:5]) == ("Lighthouse", "xoxb-")
    assert await error_of(exchange()) == "code_already_used"


async def test_the_authorize_page_sends_the_browser_back_with_a_code_and_the_state(
    harbour: Harbour,
) -> None:
    url = AuthorizeUrlGenerator(
        client_id=harbour.slack.app.client_id,
        scopes=["chat:write"],
        redirect_uri=f"{harbour.app.url}/slack/oauth/callback",
        authorization_url=harbour.slack.authorize_url,
    ).generate(state="s1")

    session = harbour.control.sender.session
    async with session.get(url, allow_redirects=False) as response:
        location = response.headers["Location"]

    assert location.startswith(f"{harbour.app.url}/slack/oauth/callback?state=s1&code=")


async def test_a_refresh_token_works_once_and_the_old_access_token_until_its_end(
    harbour: Harbour,
) -> None:
    harbour.control.add_team("Lighthouse")
    given = harbour.control.install(team="Lighthouse", rotating=True)
    old_access, old_refresh = given.access_token, given.refresh_token
    app, client = harbour.slack.app, AsyncWebClient(base_url=harbour.slack.api_url)
    rotator = AsyncTokenRotator(
        client_id=app.client_id, client_secret=app.client_secret, client=client
    )
    stored = Installation(
        user_id="U1",
        team_id=given.team_id,
        bot_token=old_access,
        bot_refresh_token=old_refresh,
        bot_token_expires_at=int(START_SECONDS),
    )

    rotated = await rotator.perform_bot_token_rotation(
        bot=stored.to_bot(), minutes_before_expiration=10**8
    )
    again = await error_of(
        client.oauth_v2_access(
            client_id=app.client_id,
            client_secret=app.client_secret,
            grant_type="refresh_token",
            refresh_token=old_refresh,
        )
    )

    assert rotated is not None
    assert rotated.bot_token.startswith("xoxe.xoxb-1-")
    assert str(rotated.bot_refresh_token).startswith("xoxe-1-")
    assert again == "invalid_refresh_token"
    assert (await client.auth_test(token=old_access))["ok"]
    harbour.control.advance_clock(43_200)
    assert await error_of(client.auth_test(token=old_access)) == "token_expired"


async def test_tokens_end_with_what_happened_to_the_app(harbour: Harbour) -> None:
    client = harbour.client

    assert await error_of(client.auth_test(token="xoxb-nobody")) == "invalid_auth"
    harbour.control.revoke_tokens()
    assert await error_of(client.auth_test()) == "token_revoked"
    harbour.control.uninstall()
    assert await error_of(client.auth_test()) == "account_inactive"


async def test_a_call_without_its_scope_names_the_scope(harbour: Harbour) -> None:
    harbour.control.add_team("Lighthouse")
    narrow = harbour.control.install(team="Lighthouse", scopes=["chat:write"])

    refused = harbour.client.team_info(token=narrow.access_token)

    assert await error_of(refused) == "missing_scope"
    assert harbour.control.calls("team.info")[0].error == "missing_scope"


async def test_an_org_wide_install_must_name_the_workspace_it_lists(harbour: Harbour) -> None:
    control = harbour.control
    for name in ("North", "South"):
        control.add_team(name, enterprise_id="E1")
        control.add_channel(f"{name.lower()}-room", team=name)
    code = control.authorize(team="North", enterprise=True)
    app, client = harbour.slack.app, AsyncWebClient(base_url=harbour.slack.api_url)
    given = await client.oauth_v2_access(
        client_id=app.client_id, client_secret=app.client_secret, code=code
    )
    token = given["access_token"]

    south = await client.conversations_list(token=token, team_id=control.find_team("South").team_id)

    assert (given["team"], given["enterprise"]["id"]) == (None, "E1")
    assert given["is_enterprise_install"] is True
    assert [channel["name"] for channel in south["channels"]] == ["south-room"]
    assert await error_of(client.conversations_list(token=token)) == "missing_argument"
