"""The workspace, its people and tokens: ``auth.*``, ``team.*``, ``users.*``, ``oauth.v2.*``."""

from __future__ import annotations

from tests.fakes.slack_server import acts
from tests.fakes.slack_server.api_call import ApiCall, paged
from tests.fakes.slack_server.rendering import team_json, team_url, user_json
from tests.fakes.slack_server.state import (
    AuthorizationCode,
    Installation,
    Json,
    SlackError,
    User,
)
from tests.fakes.slack_server.world import World

TOKEN_SECONDS = 43_200
USERS_DEFAULT = 1000


def auth_test(call: ApiCall) -> Json:
    """Whose token this is."""
    bot = call.world.slack.users[call.caller.bot_user_id]
    body: Json = {"url": team_url(call.team), "team": call.team.name, "user": bot.name.lower()}
    body |= {"team_id": call.team.team_id, "user_id": bot.user_id, "bot_id": bot.bot_id}
    body |= {"is_enterprise_install": not call.caller.team_id}
    return body | ({"enterprise_id": call.team.enterprise_id} if call.team.enterprise_id else {})


def auth_revoke(call: ApiCall) -> Json:
    """Revoke the tokens of this installation."""
    if call.flag("test"):
        return {"revoked": False}
    acts.revoke(call.world, call.caller, call.team.team_id)
    return {"revoked": True}


def team_info(call: ApiCall) -> Json:
    """The workspace."""
    call.need_scope("team:read")
    return {"team": team_json(call.team)}


def users_info(call: ApiCall) -> Json:
    """One person."""
    call.need_scope("users:read")
    return {"user": user_json(call.known_user(), call.team.team_id)}


def users_list(call: ApiCall) -> Json:
    """Everybody, with the deactivated and with strangers."""
    call.need_scope("users:read")
    people = sorted(call.world.slack.users_of(call.team.team_id), key=_user_id)
    page = call.page(people, _user_id, scope="users", default_limit=USERS_DEFAULT)
    shown = [user_json(user, call.team.team_id) for user in page.rows]
    return paged("members", shown, page) | {"cache_ts": int(call.world.now())}


def _user_id(user: User) -> str:
    return user.user_id


def bots_info(call: ApiCall) -> Json:
    """The bot of a bot id."""
    call.need_scope("users:read")
    wanted = call.required("bot")
    for user in call.world.slack.users_of(call.team.team_id):
        if user.bot_id == wanted:
            body: Json = {"id": wanted, "deleted": user.deleted, "name": user.name}
            return {"bot": body | {"updated": user.updated, "user_id": user.user_id}}
    raise SlackError("bot_not_found")


def oauth_access(world: World, arguments: Json) -> Json:
    """Exchange a code, or a refresh token, for tokens; each works once."""
    if (arguments.get("client_id"), arguments.get("client_secret")) != (
        world.app.client_id,
        world.app.client_secret,
    ):
        raise SlackError(
            "invalid_client_id" if not arguments.get("client_id") else "bad_client_secret"
        )
    if arguments.get("grant_type") == "refresh_token":
        installation = _rotated(world, str(arguments.get("refresh_token", "")))
    else:
        installation = _exchanged(world, arguments)
    issue_tokens(world, installation)
    return _token_body(world, installation)


def _exchanged(world: World, arguments: Json) -> Installation:
    code = world.slack.codes.get(str(arguments.get("code", "")))
    if code is None:
        raise SlackError("invalid_code")
    if code.used or world.now() >= code.expires_at:
        raise SlackError("code_already_used" if code.used else "invalid_code")
    if code.redirect_uri != str(arguments.get("redirect_uri") or ""):
        raise SlackError("bad_redirect_uri")
    return complete_install(world, code)


def complete_install(world: World, code: AuthorizationCode) -> Installation:
    """Put the app into the workspace that the code is for."""
    code.used = True
    installation = code.installation
    world.slack.installations.append(installation)
    bot_user_id, team_id = installation.bot_user_id, installation.team_id
    home = team_id or next(
        team.team_id
        for team in world.slack.teams.values()
        if team.enterprise_id == installation.enterprise_id
    )
    bot = User(bot_user_id, home, world.app.bot_name, bot_id=installation.bot_id)
    bot.updated = int(world.now())
    world.slack.users.setdefault(bot_user_id, bot)
    return installation


def _rotated(world: World, refresh_token: str) -> Installation:
    for installation in world.slack.installations:
        if installation.refresh_token == refresh_token != "":
            if installation.revoked or installation.uninstalled:
                raise SlackError("token_revoked")
            installation.used_refresh_tokens.add(refresh_token)
            return installation
    raise SlackError("invalid_refresh_token")


def issue_tokens(world: World, installation: Installation, access_token: str = "") -> None:
    """Give an installation a new access token, and a refresh token if it rotates.

    An access token given before keeps working until it ends, as Slack's do.
    """
    if installation.rotating:
        token = access_token or f"xoxe.xoxb-1-{world.token(48)}"
        installation.refresh_token = f"xoxe-1-{world.token(48)}"
        installation.tokens[token] = world.now() + TOKEN_SECONDS
    else:
        token = access_token or installation.access_token or f"xoxb-{world.token(48)}"
        installation.tokens[token] = 0.0
    installation.access_token = token


def _token_body(world: World, installation: Installation) -> Json:
    team = world.slack.teams.get(installation.team_id)
    enterprise = installation.enterprise_id
    body: Json = {
        "access_token": installation.access_token,
        "token_type": "bot",
        "scope": ",".join(installation.scopes),
        "bot_user_id": installation.bot_user_id,
        "app_id": world.app.app_id,
        "team": {"id": team.team_id, "name": team.name} if team else None,
        "enterprise": {"id": enterprise, "name": enterprise} if enterprise else None,
        "is_enterprise_install": team is None,
        "authed_user": {"id": installation.installer},
    }
    if installation.rotating:
        body |= {"refresh_token": installation.refresh_token, "expires_in": TOKEN_SECONDS}
    return body
