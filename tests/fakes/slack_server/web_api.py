"""Answers Web API calls: who calls, what goes wrong, then the method. Pure but for the world."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from tests.fakes.slack_server import (
    methods_chat,
    methods_conversations,
    methods_people,
    methods_surfaces,
)
from tests.fakes.slack_server.api_call import ApiCall
from tests.fakes.slack_server.faults import LATE_FAULTS, Fault, Place
from tests.fakes.slack_server.records import Call
from tests.fakes.slack_server.state import Installation, Json, SlackError, Team
from tests.fakes.slack_server.world import World

Method = Callable[[ApiCall], Json]

METHODS: dict[str, Method] = {
    "assistant.threads.setStatus": methods_surfaces.set_status,
    "assistant.threads.setSuggestedPrompts": methods_surfaces.set_suggested_prompts,
    "assistant.threads.setTitle": methods_surfaces.set_title,
    "auth.revoke": methods_people.auth_revoke,
    "auth.test": methods_people.auth_test,
    "bots.info": methods_people.bots_info,
    "chat.delete": methods_chat.delete,
    "chat.getPermalink": methods_chat.get_permalink,
    "chat.postEphemeral": methods_chat.post_ephemeral,
    "chat.postMessage": methods_chat.post,
    "chat.update": methods_chat.update,
    "conversations.history": methods_conversations.history,
    "conversations.info": methods_conversations.info,
    "conversations.join": methods_conversations.join,
    "conversations.list": methods_conversations.list_conversations,
    "conversations.members": methods_conversations.members,
    "conversations.open": methods_conversations.open_conversation,
    "conversations.replies": methods_conversations.replies,
    "team.info": methods_people.team_info,
    "users.conversations": methods_conversations.users_conversations,
    "users.info": methods_people.users_info,
    "users.list": methods_people.users_list,
    "views.open": methods_surfaces.views_open,
    "views.publish": methods_surfaces.views_publish,
    "views.update": methods_surfaces.views_update,
}
# An org-wide token must say for which workspace it lists.
_NEEDS_TEAM = frozenset({"conversations.list", "users.conversations", "users.list"})


@dataclass(frozen=True)
class Reply:
    """What goes back: a body, or what ``fault`` says instead."""

    body: Json
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    fault: Fault | None = None


def answer(world: World, method: str, arguments: Json, token: str) -> Reply:
    """Answer one call and record it."""
    for intervention in world.interventions:
        intervention.notice(method)
    installation = _bearer(world, token)
    team = _team(world, installation, arguments)
    team_id = team.team_id if team else ""
    reply, served = _answered(world, method, arguments, token, team_id)
    error = str(reply.body.get("error", ""))
    if reply.fault and reply.fault.kind != "slow":
        error = reply.fault.kind
    recorded = {name: value for name, value in arguments.items() if name != "token"}
    world.calls.append(
        Call(method, team_id, recorded, reply.status, error, tuple(served), world.now())
    )
    return reply


def _answered(
    world: World, method: str, arguments: Json, token: str, team_id: str
) -> tuple[Reply, list[str]]:
    named_ts = str(arguments.get("ts") or arguments.get("thread_ts") or "")
    place = Place(team_id, str(arguments.get("channel", "")), named_ts)
    fault = world.limits.fault_for(method, place)
    if fault and fault.kind not in LATE_FAULTS:
        return _faulty(fault), []
    wait = world.limits.retry_after(method, team_id, world.now())
    if wait:
        return _rate_limited({"Retry-After": str(wait)}), []
    served: list[str] = []
    try:
        body = {"ok": True} | _run(world, method, arguments, token, served)
    except SlackError as error:
        return Reply({"ok": False, "error": error.code} | error.details, fault=fault), []
    return Reply(body, fault=fault), served


def _run(world: World, method: str, arguments: Json, token: str, served: list[str]) -> Json:
    if method == "api.test":
        return {"args": arguments}
    if method == "oauth.v2.access":
        return methods_people.oauth_access(world, arguments)
    if method in ("apps.connections.open", "apps.event.authorizations.list"):
        return _app_level(world, method, arguments, token)
    if method not in METHODS:
        raise SlackError("unknown_method", req_method=method)
    installation = _authenticated(world, token)
    team = _team(world, installation, arguments)
    if team is None or (
        not installation.team_id and method in _NEEDS_TEAM and "team_id" not in arguments
    ):
        raise SlackError("missing_argument")
    call = ApiCall(world, method, arguments, installation, team, served)
    return METHODS[method](call)


def _app_level(world: World, method: str, arguments: Json, token: str) -> Json:
    if token != world.app.app_token:
        raise SlackError("invalid_auth" if token else "not_authed")
    if method == "apps.event.authorizations.list":
        return methods_surfaces.list_authorizations(world, arguments)
    ticket = world.token(32)
    world.socket_tickets.add(ticket)
    address = world.origin.replace("http", "ws", 1)
    return {"url": f"{address}/link/?ticket={ticket}&app_id={world.app.app_id}"}


def _bearer(world: World, token: str) -> Installation | None:
    for installation in reversed(world.slack.installations):
        if token and token in installation.tokens:
            return installation
    return None


def _authenticated(world: World, token: str) -> Installation:
    installation = _bearer(world, token)
    if installation is None:
        raise SlackError("invalid_auth" if token else "not_authed")
    if installation.uninstalled:
        raise SlackError("account_inactive")
    if installation.revoked:
        raise SlackError("token_revoked")
    ends_at = installation.tokens[token]
    if ends_at and world.now() >= ends_at:
        raise SlackError("token_expired")
    return installation


def _team(world: World, installation: Installation | None, arguments: Json) -> Team | None:
    """The workspace of a call: the token's, or within an enterprise the one it names."""
    if installation is None:
        return None
    if installation.team_id:
        return world.slack.teams.get(installation.team_id)
    channel = world.slack.channels.get(str(arguments.get("channel", "")))
    named = str(arguments.get("team_id", "")) or (channel.team_id if channel else "")
    for team in world.slack.teams.values():
        if team.enterprise_id == installation.enterprise_id and named in ("", team.team_id):
            return team
    return None


def _faulty(fault: Fault) -> Reply:
    if fault.kind == "ratelimited":
        after = fault.retry_after
        return _rate_limited({} if after is None else {"Retry-After": str(after)})
    if fault.kind == "error":
        return Reply({"ok": False, "error": fault.error or "fatal_error"})
    return Reply({}, status=fault.status if fault.kind == "http" else 200, fault=fault)


def _rate_limited(headers: dict[str, str]) -> Reply:
    return Reply({"ok": False, "error": "ratelimited"}, 429, headers)
