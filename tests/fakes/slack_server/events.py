"""The events of the Events API, as values. ``event_ts`` is the time of the event, as text."""

from __future__ import annotations

from tests.fakes.slack_server.messages import Change
from tests.fakes.slack_server.rendering import (
    channel_type,
    message_json,
    replies_of,
    user_json,
)
from tests.fakes.slack_server.state import Channel, Installation, Json, Message, Slack, User

# Bot messages of apps carry no subtype; the subtype is left to old webhooks.
_PREFIXES = {"public_channel": "channel", "private_channel": "group", "im": "im", "mpim": "mpim"}


def message_event(slack: Slack, channel: Channel, message: Message) -> Json:
    """A new message of any subtype."""
    body = message_json(slack, channel, message)
    return body | _place(channel) | {"event_ts": message.ts}


def mention_event(slack: Slack, channel: Channel, message: Message) -> Json:
    """The same message once more, because it names the app's bot."""
    body = message_json(slack, channel, message)
    return body | {"type": "app_mention", "channel": channel.channel_id, "event_ts": message.ts}


def changed_event(channel: Channel, change: Change, event_ts: str) -> Json:
    """An edit, a preview, new numbers of a thread, or a tombstone."""
    return _change(channel, "message_changed", event_ts) | {
        "message": change.after,
        "previous_message": change.before,
    }


def deleted_event(channel: Channel, change: Change, event_ts: str) -> Json:
    """A deletion; ``ts`` is the deletion's own, ``deleted_ts`` the message's."""
    return _change(channel, "message_deleted", event_ts) | {
        "deleted_ts": change.ts,
        "previous_message": change.before,
    }


def parent_event(slack: Slack, channel: Channel, reply: Message, event_ts: str) -> Json:
    """The change of a root's numbers that a reply brings, without ``edited``."""
    root = channel.messages[reply.thread_ts]
    after = message_json(slack, channel, root)
    before = dict(after)
    others = [other for other in replies_of(channel, root.ts) if other.ts != reply.ts]
    if others:
        before |= {"reply_count": len(others), "latest_reply": others[-1].ts}
    else:
        for name in ("thread_ts", "reply_count", "reply_users_count", "reply_users"):
            before.pop(name, None)
        before.pop("latest_reply", None)
    return changed_event(channel, Change(root.ts, before, after), event_ts)


def _change(channel: Channel, subtype: str, event_ts: str) -> Json:
    body: Json = {"type": "message", "subtype": subtype, "hidden": True}
    return body | _place(channel) | {"ts": event_ts, "event_ts": event_ts}


def _place(channel: Channel) -> Json:
    return {"channel": channel.channel_id, "channel_type": channel_type(channel)}


def renamed_event(channel: Channel, event_ts: str) -> Json:
    """``channel_rename`` or ``group_rename``."""
    described = {
        "id": channel.channel_id,
        "name": channel.name,
        "name_normalized": channel.name,
        "created": channel.created,
        "is_channel": channel.kind == "public_channel",
        "is_mpim": channel.kind == "mpim",
    }
    return _lifecycle(channel, "rename", event_ts) | {"channel": described}


def archived_event(channel: Channel, actor: str, event_ts: str) -> Json:
    """``channel_archive`` or ``channel_unarchive``, or the group's."""
    kind = "archive" if channel.archived else "unarchive"
    return _lifecycle(channel, kind, event_ts) | {"user": actor, "is_moved": 0}


def channel_deleted_event(channel: Channel, actor: str, event_ts: str) -> Json:
    """``channel_deleted`` or ``group_deleted``."""
    return _lifecycle(channel, "deleted", event_ts) | {"actor_id": actor}


def channel_left_event(channel: Channel, actor: str, event_ts: str) -> Json:
    """The app's bot was removed: ``channel_left`` or ``group_left``."""
    return _lifecycle(channel, "left", event_ts) | {"actor_id": actor}


def _lifecycle(channel: Channel, kind: str, event_ts: str) -> Json:
    return {
        "type": f"{_PREFIXES[channel.kind]}_{kind}",
        "channel": channel.channel_id,
        "event_ts": event_ts,
    }


def id_changed_event(old_id: str, new_id: str, event_ts: str) -> Json:
    """A channel got another id."""
    ids = {"old_channel_id": old_id, "new_channel_id": new_id}
    return {"type": "channel_id_changed", "event_ts": event_ts} | ids


def shared_event(channel: Channel, other_team_id: str, event_ts: str) -> Json:
    """A channel was opened to another workspace."""
    body: Json = {"type": "channel_shared", "channel": channel.channel_id}
    return body | {"connected_team_id": other_team_id, "event_ts": event_ts}


def unshared_event(channel: Channel, other_team_id: str, event_ts: str) -> Json:
    """Another workspace lost a channel."""
    body: Json = {"type": "channel_unshared", "channel": channel.channel_id}
    body |= {"previously_connected_team_id": other_team_id, "event_ts": event_ts}
    return body | {"is_ext_shared": bool(channel.shared_with)}


def member_event(kind: str, channel: Channel, user: User, event_ts: str) -> Json:
    """``kind`` is ``joined`` or ``left``; ``channel_type`` is a letter here."""
    return {
        "type": f"member_{kind}_channel",
        "user": user.user_id,
        "channel": channel.channel_id,
        "channel_type": "G" if channel.is_private else "C",
        "team": channel.team_id,
        "event_ts": event_ts,
    }


def user_event(kind: str, user: User, event_ts: str) -> Json:
    """``user_change`` or ``team_join``."""
    body: Json = {"type": kind, "user": user_json(user, user.team_id), "event_ts": event_ts}
    return body | ({"cache_ts": user.updated} if kind == "user_change" else {})


def home_opened_event(channel: Channel, user: User, tab: str, event_ts: str) -> Json:
    """A person opened the app's Home or Messages tab; ``channel`` is their direct one."""
    body: Json = {"type": "app_home_opened", "user": user.user_id, "tab": tab}
    return body | {"channel": channel.channel_id, "event_ts": event_ts}


def uninstalled_event() -> Json:
    """The app was removed from a workspace."""
    return {"type": "app_uninstalled"}


def tokens_revoked_event(installation: Installation) -> Json:
    """The bot's token no longer works."""
    return {
        "type": "tokens_revoked",
        "tokens": {"oauth": [], "bot": [installation.bot_user_id]},
    }
