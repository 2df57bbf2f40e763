"""Records as the JSON objects of Slack's API and events."""

from __future__ import annotations

from copy import deepcopy

from tests.fakes.slack_server.state import Channel, Json, Message, Slack, Team, User

TOMBSTONE_TEXT = "This message was deleted."
_OPTIONAL = ("subtype", "thread_ts", "bot_id", "username", "team", "client_msg_id")


def replies_of(channel: Channel, root_ts: str) -> list[Message]:
    """A thread's replies in time order, without its root."""
    return [channel.messages[ts] for ts in sorted(channel.threads.get(root_ts, ()))]


def message_json(slack: Slack, channel: Channel, message: Message) -> Json:
    """A message as history, replies and events show it; a root carries its thread's numbers."""
    body: Json = {"type": "message", "user": message.user, "ts": message.ts, "text": message.text}
    for name in _OPTIONAL:
        if getattr(message, name):
            body[name] = getattr(message, name)
    for name in ("blocks", "attachments", "files", "edited"):
        if getattr(message, name):
            body[name] = deepcopy(getattr(message, name))
    if message.metadata:
        body["metadata"] = {"event_type": message.metadata.get("event_type", "")}
    if message.subtype == "tombstone":
        body["hidden"] = True
    return body | _authors_json(slack, channel, message) | _thread_json(channel, message)


def _authors_json(slack: Slack, channel: Channel, message: Message) -> Json:
    """What Slack adds for bots and for people of another workspace."""
    author = slack.users.get(message.user)
    if author is None:
        return {}
    if message.bot_id:
        profile = {"id": message.bot_id, "name": author.name, "team_id": author.team_id}
        return {"bot_profile": profile | {"deleted": False, "updated": author.updated}}
    if author.team_id != channel.team_id:
        foreign = {"user_team": author.team_id, "source_team": author.team_id}
        return foreign | {"user_profile": _short_profile(author)}
    return {}


def _short_profile(user: User) -> Json:
    return {
        "name": user.name.lower(),
        "real_name": user.name,
        "display_name": user.name,
        "team": user.team_id,
        "is_restricted": user.is_restricted,
        "is_ultra_restricted": user.is_ultra_restricted,
    }


def _thread_json(channel: Channel, message: Message) -> Json:
    if message.thread_ts and message.thread_ts != message.ts:
        root = channel.messages.get(message.thread_ts)
        parent: Json = {"parent_user_id": root.user} if root else {}
        if message.subtype == "thread_broadcast" and root:
            parent["root"] = {"ts": root.ts, "user": root.user, "text": root.text}
            parent["root"] |= {"type": "message", "thread_ts": root.ts} | _thread_json(
                channel, root
            )
        return parent
    replies = replies_of(channel, message.ts)
    if not replies:
        return {}
    people = list(dict.fromkeys(reply.user for reply in replies))
    return {
        "thread_ts": message.ts,
        "reply_count": len(replies),
        "reply_users_count": len(people),
        "reply_users": people[:5],
        "latest_reply": replies[-1].ts,
        "is_locked": False,
        "subscribed": False,
    }


def user_json(user: User, viewing_team_id: str) -> Json:
    """A user object as ``users.info`` shows it to a workspace."""
    return {
        "id": user.user_id,
        "team_id": user.team_id,
        "name": user.name.lower().replace(" ", "."),
        "deleted": user.deleted,
        "real_name": user.name,
        "tz": "Europe/London",
        "tz_label": "Greenwich Mean Time",
        "tz_offset": 0,
        "profile": _profile(user),
        "is_admin": user.is_admin,
        "is_owner": user.is_owner,
        "is_primary_owner": False,
        "is_restricted": user.is_restricted,
        "is_ultra_restricted": user.is_ultra_restricted,
        "is_bot": bool(user.bot_id),
        "is_app_user": False,
        "is_stranger": user.team_id != viewing_team_id,
        "updated": user.updated,
    }


def _profile(user: User) -> Json:
    profile: Json = {
        "title": user.title,
        "real_name": user.name,
        "real_name_normalized": user.name,
        "display_name": user.name,
        "display_name_normalized": user.name,
        "team": user.team_id,
    }
    return profile | ({"bot_id": user.bot_id} if user.bot_id else {})


def channel_json(channel: Channel, viewing_team_id: str, bot_user_id: str) -> Json:
    """A conversation object as the bot of one workspace sees it."""
    if channel.kind == "im":
        return _direct_json(channel, bot_user_id)
    return {
        "id": channel.channel_id,
        "name": channel.name,
        "name_normalized": channel.name,
        "is_channel": channel.kind == "public_channel",
        "is_group": channel.kind == "private_channel",
        "is_im": False,
        "is_mpim": channel.kind == "mpim",
        "is_private": channel.is_private,
        "created": channel.created,
        "is_archived": channel.archived,
        "is_general": False,
        "is_shared": bool(channel.shared_with),
        "is_ext_shared": bool(channel.shared_with),
        "is_org_shared": False,
        "shared_team_ids": [channel.team_id, *channel.shared_with],
        "context_team_id": viewing_team_id,
        "is_member": bot_user_id in channel.members,
        "creator": channel.members[0] if channel.members else "",
        "topic": {"value": "", "creator": "", "last_set": 0},
        "purpose": {"value": channel.purpose, "creator": "", "last_set": channel.created},
        "previous_names": list(channel.previous_names),
        "num_members": len(channel.members),
    }


def _direct_json(channel: Channel, bot_user_id: str) -> Json:
    others = [member for member in channel.members if member != bot_user_id]
    return {
        "id": channel.channel_id,
        "created": channel.created,
        "is_archived": channel.archived,
        "is_im": True,
        "is_org_shared": False,
        "user": others[0] if others else bot_user_id,
        "context_team_id": channel.team_id,
    }


def team_json(team: Team) -> Json:
    """A workspace as ``team.info`` shows it."""
    body: Json = {"id": team.team_id, "name": team.name, "domain": team.domain}
    body |= {"email_domain": "", "url": team_url(team)}
    return body | ({"enterprise_id": team.enterprise_id} if team.enterprise_id else {})


def team_url(team: Team) -> str:
    """The workspace's address, as ``auth.test`` gives it."""
    return f"https://{team.domain}.slack.com/"


def permalink(team: Team, channel: Channel, message: Message) -> str:
    """The address of a message; a reply's names its thread."""
    url = f"{team_url(team)}archives/{channel.channel_id}/p{message.ts.replace('.', '')}"
    if message.thread_ts and message.thread_ts != message.ts:
        return f"{url}?thread_ts={message.thread_ts}&cid={channel.channel_id}"
    return url


def channel_type(channel: Channel) -> str:
    """The ``channel_type`` of message and member events."""
    names = {"public_channel": "channel", "private_channel": "group", "im": "im", "mpim": "mpim"}
    return names[channel.kind]
