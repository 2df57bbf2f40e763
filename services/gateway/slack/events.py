"""What a delivery of Slack is: an event to record, a command, a challenge, or nothing. Pure.

The same for HTTP and Socket Mode. A mention and a direct message are questions, so they become
commands; every other event goes to ingest as it came.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from recall.ingest.v1 import slack_pb2

Json = Mapping[str, Any]

SUMMARISE_THREAD = "summarise_thread"
MARK_CORRECTED = "mark_corrected"
SHARE = "share_answer"
HELPFUL = "helpful"
NOT_HELPFUL = "not_helpful"
ASK_AGAIN = "ask_again"

_BUTTONS = frozenset({SHARE, HELPFUL, NOT_HELPFUL, ASK_AGAIN})
_SHORTCUTS = frozenset({SUMMARISE_THREAD, MARK_CORRECTED})
# What a person wrote; every other subtype of a direct message is a notice, a change or a bot's.
_WRITTEN = ("", "file_share", "thread_broadcast")
_MENTION = re.compile(r"<@([A-Z0-9]+)(?:\|[^>]*)?>")

COMMAND_DOORS = slack_pb2.CommandDoor


class UnreadableError(ValueError):
    """The delivery is not of the shape that Slack documents; the message says where."""


@dataclass(frozen=True)
class Challenge:
    """Slack asks whether this address is ours."""

    text: str


@dataclass(frozen=True)
class Ignored:
    """Nothing to do; ``why`` is for the log."""

    why: str


Recordable = slack_pb2.RecordEventRequest | slack_pb2.RecordCommandRequest
Delivery = Recordable | Challenge | Ignored


def read_events_body(body: bytes) -> Delivery:
    """The body of the events endpoint. Raises UnreadableError."""
    try:
        envelope = json.loads(body)
    except (ValueError, RecursionError):
        raise UnreadableError("the body is not JSON") from None
    return read_envelope(envelope, body)


def read_envelope(envelope: object, body: bytes) -> Delivery:
    """One envelope of the Events API with its bytes. Raises UnreadableError."""
    given = _object(envelope, "the body")
    kind = _text(given.get("type"))
    if kind == "url_verification":
        return Challenge(_text(given.get("challenge")))
    if kind != "event_callback":
        return Ignored(kind or "no type")
    event = _object(given.get("event"), "event")
    event_id = _text(given.get("event_id"))
    if not event_id:
        raise UnreadableError("event_id is missing")
    if _is_question(event):
        return _question(given, event, event_id)
    if event.get("type") == "app_mention" or _is_direct(event):
        return Ignored("not written by a person")
    return slack_pb2.RecordEventRequest(
        team_id=_team(given),
        enterprise_id=_enterprise(given),
        event_id=event_id,
        envelope_json=body,
    )


def read_slash_command(fields: Mapping[str, str]) -> Delivery:
    """The fields of a slash command. Raises UnreadableError."""
    trigger_id = fields.get("trigger_id", "")
    if not trigger_id or not fields.get("user_id"):
        raise UnreadableError("trigger_id or user_id is missing")
    return slack_pb2.RecordCommandRequest(
        team_id=fields.get("team_id", ""),
        enterprise_id=fields.get("enterprise_id", ""),
        dedup_key=trigger_id,
        command=slack_pb2.SlackCommand(
            door=COMMAND_DOORS.COMMAND_DOOR_SLASH,
            text=fields.get("text", ""),
            user_id=fields["user_id"],
            channel_id=fields.get("channel_id", ""),
            response_url=fields.get("response_url", ""),
            trigger_id=trigger_id,
        ),
    )


def read_interaction(payload: object) -> Delivery:
    """A pressed button, a chosen shortcut or a submitted view. Raises UnreadableError."""
    given = _object(payload, "payload")
    command = _command_of(given)
    if command is None:
        return Ignored(_text(given.get("type")) or "no type")
    team, user = _part(given, "team"), _part(given, "user")
    command.user_id = _text(user.get("id"))
    command.trigger_id = _text(given.get("trigger_id"))
    if not command.user_id or not command.trigger_id:
        raise UnreadableError("user or trigger_id is missing")
    return slack_pb2.RecordCommandRequest(
        team_id=_text(team.get("id")) or _text(user.get("team_id")),
        enterprise_id=_text(_part(given, "enterprise").get("id")),
        dedup_key=command.trigger_id,
        command=command,
    )


def _is_direct(event: Json) -> bool:
    return event.get("type") == "message" and event.get("channel_type") == "im"


def _is_question(event: Json) -> bool:
    written = _text(event.get("subtype")) in _WRITTEN and not event.get("bot_id")
    # A mention inside a direct message comes as a direct message too.
    mentioned = event.get("type") == "app_mention" and not _channel(event).startswith("D")
    return bool(written and event.get("user") and (_is_direct(event) or mentioned))


def _question(envelope: Json, event: Json, event_id: str) -> slack_pb2.RecordCommandRequest:
    mentioned = event.get("type") == "app_mention"
    doors = COMMAND_DOORS
    ts, thread_ts = _text(event.get("ts")), _text(event.get("thread_ts"))
    return slack_pb2.RecordCommandRequest(
        team_id=_team(envelope),
        enterprise_id=_enterprise(envelope),
        dedup_key=event_id,
        command=slack_pb2.SlackCommand(
            door=doors.COMMAND_DOOR_MENTION if mentioned else doors.COMMAND_DOOR_DIRECT,
            text=without_mention(_text(event.get("text")), _bot_user_id(envelope)),
            user_id=_text(event.get("user")),
            channel_id=_channel(event),
            thread_ts="" if thread_ts == ts else thread_ts,
            message_ts=ts,
        ),
    )


def without_mention(text: str, bot_user_id: str) -> str:
    """The text without the app's own mention; without an id, without the mention it begins with."""
    if bot_user_id:
        kept = _MENTION.sub(lambda found: "" if found[1] == bot_user_id else found[0], text)
        return kept.strip()
    return _MENTION.sub("", text, count=1).strip() if _MENTION.match(text) else text.strip()


def _command_of(payload: Json) -> slack_pb2.SlackCommand | None:
    kind = _text(payload.get("type"))
    if kind == "block_actions":
        return _button(payload)
    if kind == "message_action" and payload.get("callback_id") in _SHORTCUTS:
        return _shortcut(payload)
    if kind == "view_submission" and _part(payload, "view").get("callback_id") == MARK_CORRECTED:
        return _submission(_part(payload, "view"))
    return None


def _button(payload: Json) -> slack_pb2.SlackCommand | None:
    actions = payload.get("actions")
    pressed = _object(actions[0], "actions") if isinstance(actions, list) and actions else {}
    if pressed.get("action_id") not in _BUTTONS:
        return None
    container = _part(payload, "container")
    return slack_pb2.SlackCommand(
        door=COMMAND_DOORS.COMMAND_DOOR_BUTTON,
        channel_id=_text(container.get("channel_id")) or _channel(payload),
        thread_ts=_text(container.get("thread_ts")),
        message_ts=_text(container.get("message_ts")),
        response_url=_text(payload.get("response_url")),
        action_id=_text(pressed.get("action_id")),
        value=_text(pressed.get("value")),
    )


def _shortcut(payload: Json) -> slack_pb2.SlackCommand:
    message_ts = _text(payload.get("message_ts"))
    thread_ts = _text(_part(payload, "message").get("thread_ts"))
    return slack_pb2.SlackCommand(
        door=COMMAND_DOORS.COMMAND_DOOR_SHORTCUT,
        channel_id=_channel(payload),
        thread_ts="" if thread_ts == message_ts else thread_ts,
        message_ts=message_ts,
        response_url=_text(payload.get("response_url")),
        action_id=_text(payload.get("callback_id")),
    )


def _submission(view: Json) -> slack_pb2.SlackCommand:
    blocks = _part(_part(view, "state"), "values")
    fields = {
        action_id: _text(_object(state, action_id).get("value"))
        for block in blocks.values()
        for action_id, state in _object(block, "state.values").items()
    }
    return slack_pb2.SlackCommand(
        door=COMMAND_DOORS.COMMAND_DOOR_VIEW,
        action_id=_text(view.get("callback_id")),
        value=_text(view.get("private_metadata")),
        fields=fields,
    )


def _team(envelope: Json) -> str:
    return _text(envelope.get("context_team_id")) or _text(envelope.get("team_id"))


def _enterprise(envelope: Json) -> str:
    return _text(envelope.get("context_enterprise_id")) or _text(envelope.get("enterprise_id"))


def _bot_user_id(envelope: Json) -> str:
    listed = envelope.get("authorizations")
    first = listed[0] if isinstance(listed, list) and listed else {}
    return _text(first.get("user_id")) if isinstance(first, dict) else ""


def _channel(value: Json) -> str:
    channel = value.get("channel")
    return _text(channel.get("id")) if isinstance(channel, dict) else _text(channel)


def _part(value: Json, name: str) -> Json:
    """An object inside an object; what is absent or null is empty."""
    return _object(value.get(name) or {}, name)


def _object(value: object, name: str) -> Json:
    if not isinstance(value, dict):
        raise UnreadableError(f"{name} is not an object")
    return value


def _text(value: object) -> str:
    """Text that can be stored; half a character (a lone surrogate) is replaced."""
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else ""
