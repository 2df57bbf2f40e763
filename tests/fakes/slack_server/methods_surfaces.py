"""Modals, the Home tab, the agent's thread status, and app-level methods."""

from __future__ import annotations

from tests.fakes.slack_server.api_call import ApiCall
from tests.fakes.slack_server.blocks import check_view
from tests.fakes.slack_server.state import Json, SlackError, ThreadStatus, View
from tests.fakes.slack_server.world import World, authorization


def views_open(call: ApiCall) -> Json:
    """Open a modal, once, within three seconds of the trigger."""
    trigger = call.world.slack.triggers.get(call.required("trigger_id"))
    if trigger is None or trigger.team_id != call.team.team_id:
        raise SlackError("invalid_trigger_id")
    if trigger.used:
        raise SlackError("exchanged_trigger_id")
    if call.world.now() >= trigger.expires_at:
        raise SlackError("expired_trigger_id")
    body = _checked_view(call)
    trigger.used = True
    return _stored(call, trigger.user_id, body, f"V{call.world.token(10).upper()}")


def views_publish(call: ApiCall) -> Json:
    """Replace a person's Home tab."""
    user = call.known_user("user_id")
    return _stored(call, user.user_id, _checked_view(call), f"VHOME{user.user_id}")


def views_update(call: ApiCall) -> Json:
    """Replace an open modal."""
    view = call.world.slack.views.get(call.required("view_id"))
    if view is None or view.team_id != call.team.team_id:
        raise SlackError("not_found")
    return _stored(call, view.user_id, _checked_view(call), view.view_id)


def _checked_view(call: ApiCall) -> Json:
    view = call.structure("view")
    check_view(view)
    body: Json = view
    return body


def _stored(call: ApiCall, user_id: str, body: Json, view_id: str) -> Json:
    view = View(view_id, call.team.team_id, user_id, body["type"], body)
    call.world.slack.views[view_id] = view
    return {"view": view_json(call.world, view)}


def view_json(world: World, view: View) -> Json:
    """A view as the app gets it back, and in its submission."""
    added = {"id": view.view_id, "team_id": view.team_id, "app_id": world.app.app_id}
    defaults = {"private_metadata": "", "callback_id": "", "state": {"values": {}}, "hash": "1.x"}
    return defaults | view.body | added


def set_status(call: ApiCall) -> Json:
    """The line that says what the app is doing; an empty one ends it."""
    return _thread(call, "channel_id", "thread_ts", "status", "loading_messages")


def set_title(call: ApiCall) -> Json:
    """The name of a conversation with the app."""
    return _thread(call, "channel_id", "thread_ts", "title")


def set_suggested_prompts(call: ApiCall) -> Json:
    """What a person may start with."""
    return _thread(call, "channel_id", "", "title", "prompts")


def _thread(call: ApiCall, channel: str, thread: str, *names: str) -> Json:
    call.need_scope("assistant:write", "chat:write")
    found = call.joined_channel(channel)
    thread_ts = call.required(thread) if thread else call.text("thread_ts")
    value = {name: call.arguments[name] for name in names if name in call.arguments}
    method = call.method.rpartition(".")[2]
    status = ThreadStatus(found.channel_id, thread_ts, method, value)
    call.world.slack.statuses.append(status)
    return {}


def list_authorizations(world: World, arguments: Json) -> Json:
    """Every installation that may see an event."""
    seeing = world.event_contexts.get(str(arguments.get("event_context", "")))
    if seeing is None:
        raise SlackError("invalid_event_context")
    return {"authorizations": [authorization(one, one.team_id) for one in seeing]}
