"""What Slack sends when somebody types a command or presses something. Values in, values out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tests.fakes.slack_server.state import Channel, Json, ResponseUrl, Team, Trigger, User
from tests.fakes.slack_server.world import AppIdentity

_SHOWN_NAMES = {"im": "directmessage", "private_channel": "privategroup"}


def response_address(origin: str, place: ResponseUrl) -> str:
    """The URL of a place to answer."""
    return f"{origin}/response/{place.key}"


def command_fields(
    app: AppIdentity, team: Team, channel: Channel, user: User, typed: tuple[str, str]
) -> dict[str, str]:
    """The form of a slash command; ``typed`` is the command and its text."""
    command, text = typed
    fields = {
        "token": app.verification_token,
        "team_id": team.team_id,
        "team_domain": team.domain,
        "channel_id": channel.channel_id,
        "channel_name": _SHOWN_NAMES.get(channel.kind, channel.name),
        "user_id": user.user_id,
        "user_name": user.name.lower(),
        "command": command,
        "text": text,
        "api_app_id": app.app_id,
        "is_enterprise_install": "false",
    }
    return fields | ({"enterprise_id": team.enterprise_id} if team.enterprise_id else {})


def interaction_base(app: AppIdentity, team: Team, user: User, trigger: Trigger) -> Json:
    """What every interactive payload has."""
    enterprise = {"id": team.enterprise_id, "name": ""} if team.enterprise_id else None
    person = {"id": user.user_id, "username": user.name.lower(), "name": user.name.lower()}
    return {
        "team": {"id": team.team_id, "domain": team.domain},
        "user": person | {"team_id": user.team_id},
        "enterprise": enterprise,
        "is_enterprise_install": False,
        "api_app_id": app.app_id,
        "token": app.verification_token,
        "trigger_id": trigger.trigger_id,
    }


def message_place(channel: Channel, response_url: str) -> Json:
    """Where an interaction with a message happened."""
    name = _SHOWN_NAMES.get(channel.kind, channel.name)
    return {
        "channel": {"id": channel.channel_id, "name": name},
        "response_url": response_url,
    }


def message_container(channel: Channel, message: Json, *, is_ephemeral: bool) -> Json:
    """The ``container`` of a click on a message."""
    container: Json = {
        "type": "message",
        "message_ts": message["ts"],
        "channel_id": channel.channel_id,
        "is_ephemeral": is_ephemeral,
    }
    thread = message.get("thread_ts")
    return container | ({"thread_ts": thread} if thread else {})


def buttons(blocks: list[Json]) -> Iterator[Json]:
    """The actions that a click on each button of some blocks would send."""
    for block in blocks:
        for element in [*(block.get("elements") or []), block.get("accessory") or {}]:
            for action in _actions_of(element):
                yield action | {"block_id": block.get("block_id", "")}


def _actions_of(element: Mapping[str, Json]) -> Iterator[Json]:
    kind = str(element.get("type", ""))
    identity: Json = {"type": kind, "action_id": element.get("action_id", "")}
    if kind == "button":
        yield identity | {"text": element.get("text"), "value": element.get("value", "")}
    elif kind == "icon_button":
        yield identity | {"value": element.get("value", "")}
    elif kind == "feedback_buttons":
        for side in ("positive_button", "negative_button"):
            pressed = element.get(side) or {}
            yield identity | {"text": pressed.get("text"), "value": pressed.get("value", "")}


def find_button(blocks: list[Json], action_id: str, value: str) -> Json | None:
    """The action of a button; ``value`` tells several of one id apart, "" takes the first."""
    for action in buttons(blocks):
        if action["action_id"] == action_id and value in ("", action["value"]):
            return action
    return None
