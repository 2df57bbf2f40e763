"""The ``chat.*`` methods, and what the app's bot does to messages."""

from __future__ import annotations

from collections.abc import Callable

from tests.fakes.slack_server import acts
from tests.fakes.slack_server.api_call import ApiCall
from tests.fakes.slack_server.blocks import check_message
from tests.fakes.slack_server.messages import (
    Draft,
    change_message,
    find_message,
)
from tests.fakes.slack_server.rendering import message_json, permalink
from tests.fakes.slack_server.state import Channel, Json, Message, SlackError


def post(call: ApiCall) -> Json:
    """Post as the bot; a person's id stands for their direct conversation."""
    call.need_scope("chat:write")
    channel = _target(call)
    check_message(call.text("text"), call.structure("blocks"), call.structure("attachments"))
    message = acts.post(call.world, channel, _draft(call))
    # A post in a thread ends the status line that stood there.
    end_status(call, channel.channel_id, message.thread_ts or message.ts)
    shown = message_json(call.world.slack, channel, message)
    return {"channel": channel.channel_id, "ts": message.ts, "message": shown}


def _target(call: ApiCall) -> Channel:
    named = call.required("channel")
    slack = call.world.slack
    if named in slack.users:
        members = [call.caller.bot_user_id, named]
        return acts.open_direct(call.world, call.team.team_id, members)[0]
    if named not in slack.channels:
        ids = [
            c.channel_id
            for c in slack.channels_of(call.team.team_id)
            if c.name == named.lstrip("#")
        ]
        call.arguments = {**call.arguments, "channel": ids[0] if ids else named}
    channel = call.joined_channel()
    if channel.archived:
        raise SlackError("is_archived")
    return channel


def _draft(call: ApiCall) -> Draft:
    bot_user_id = call.caller.bot_user_id
    metadata = call.structure("metadata")
    if metadata is not None and not (
        isinstance(metadata, dict) and "event_type" in metadata and "event_payload" in metadata
    ):
        raise SlackError("invalid_metadata_format")
    return Draft(
        bot_user_id,
        call.text("text"),
        thread=call.text("thread_ts"),
        broadcast=call.flag("reply_broadcast"),
        bot_id=call.caller.bot_id,
        team=call.team.team_id,
        metadata=metadata,
        lists={name: call.structure(name) or [] for name in ("blocks", "attachments")},
    )


def post_ephemeral(call: ApiCall) -> Json:
    """Show a message to one member of the channel; no history keeps it."""
    call.need_scope("chat:write")
    channel = _target(call)
    user = call.required("user")
    if user not in channel.members:
        raise SlackError("user_not_in_channel")
    check_message(call.text("text"), call.structure("blocks"), call.structure("attachments"))
    message = acts.show_only_to(call.world, channel, user, _draft(call))
    return {"message_ts": message.ts}


def update(call: ApiCall) -> Json:
    """Replace the words of one of the bot's own messages."""
    call.need_scope("chat:write")
    channel = call.visible_channel()
    message = _own(call, channel, "cant_update_message")
    blocks, attachments = call.structure("blocks"), call.structure("attachments")
    check_message(call.text("text"), blocks, attachments)
    stamp = {"user": call.caller.bot_user_id, "ts": call.world.event_ts()}

    def rewrite(stored: Message) -> None:
        stored.text, stored.edited = call.text("text"), stamp
        stored.blocks = blocks or []
        stored.attachments = stored.attachments if attachments is None else attachments

    _change(call, channel, message.ts, rewrite)
    shown = message_json(call.world.slack, channel, message)
    body = {"channel": channel.channel_id, "ts": message.ts, "text": message.text}
    return body | {"message": shown}


def _change(call: ApiCall, channel: Channel, ts: str, rewrite: Callable[[Message], None]) -> None:
    change = change_message(call.world.slack, channel, ts, rewrite)
    acts.announce_change(call.world, channel, change)


def delete(call: ApiCall) -> Json:
    """Delete one of the bot's own messages."""
    call.need_scope("chat:write")
    channel = call.visible_channel()
    message = _own(call, channel, "cant_delete_message")
    acts.delete(call.world, channel, message.ts)
    return {"channel": channel.channel_id, "ts": message.ts}


def _own(call: ApiCall, channel: Channel, refusal: str) -> Message:
    message = find_message(channel, call.required("ts"))
    if message.bot_id != call.caller.bot_id:
        raise SlackError(refusal)
    return message


def get_permalink(call: ApiCall) -> Json:
    """The address of a message."""
    channel = call.visible_channel()
    message = find_message(channel, call.required("message_ts"))
    home = call.world.slack.teams[call.team.team_id]
    return {"channel": channel.channel_id, "permalink": permalink(home, channel, message)}


def end_status(call: ApiCall, channel_id: str, thread_ts: str) -> None:
    """Record that the status line of a thread is gone."""
    for status in reversed(call.world.slack.statuses):
        if (status.channel_id, status.thread_ts) == (channel_id, thread_ts):
            status.value.setdefault("ended_at", call.world.now())
