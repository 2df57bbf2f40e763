"""The ``conversations.*`` methods, and ``users.conversations``."""

from __future__ import annotations

from tests.fakes.slack_server import acts
from tests.fakes.slack_server.api_call import ApiCall, paged
from tests.fakes.slack_server.identifiers import padded_ts
from tests.fakes.slack_server.messages import top_level
from tests.fakes.slack_server.paging import DOWN
from tests.fakes.slack_server.rendering import channel_json, message_json, replies_of
from tests.fakes.slack_server.state import Channel, Json, Message, SlackError, User

HISTORY_DEFAULT = 100
LIST_DEFAULT = 100
REPLIES_DEFAULT = 1000


def list_conversations(call: ApiCall) -> Json:
    """Public conversations, and the private ones the bot is in."""
    found = [
        channel
        for channel in call.world.slack.channels_of(call.team.team_id)
        if not channel.is_private or call.is_member(channel)
    ]
    return _channels_page(call, found, "list")


def users_conversations(call: ApiCall) -> Json:
    """The conversations a person is in, as far as the bot can see them."""
    user = call.known_user() if call.text("user") else None
    member = user.user_id if user else call.caller.bot_user_id
    found = [
        channel
        for channel in call.world.slack.channels_of(call.team.team_id)
        if member in channel.members and (not channel.is_private or call.is_member(channel))
    ]
    return _channels_page(call, found, member)


def _channels_page(call: ApiCall, found: list[Channel], scope: str) -> Json:
    kinds = (call.text("types") or "public_channel").split(",")
    wanted = [channel for channel in found if channel.kind in kinds]
    for channel in wanted:
        call.need_scope_for(channel, "read")
    if call.flag("exclude_archived"):
        wanted = [channel for channel in wanted if not channel.archived]
    wanted.sort(key=_channel_id)
    page = call.page(wanted, _channel_id, scope=scope, default_limit=LIST_DEFAULT)
    return paged("channels", [_described(call, channel) for channel in page.rows], page)


def _channel_id(channel: Channel) -> str:
    return channel.channel_id


def _described(call: ApiCall, channel: Channel) -> Json:
    return channel_json(channel, call.team.team_id, call.caller.bot_user_id)


def info(call: ApiCall) -> Json:
    """One conversation."""
    channel = call.visible_channel()
    call.need_scope_for(channel, "read")
    described = _described(call, channel)
    if not call.flag("include_num_members"):
        described.pop("num_members", None)
    return {"channel": described}


def members(call: ApiCall) -> Json:
    """The ids of a conversation's members."""
    channel = call.visible_channel()
    call.need_scope_for(channel, "read")
    page = call.page(
        sorted(channel.members), str, scope=channel.channel_id, default_limit=LIST_DEFAULT
    )
    return paged("members", page.rows, page)


def history(call: ApiCall) -> Json:
    """Top-level messages and broadcast replies, newest first."""
    channel = call.joined_channel()
    call.need_scope_for(channel, "history")
    inside = [message for message in top_level(channel) if _within(call, message)]
    page = call.page(
        inside,
        _ts,
        scope=_window(call, channel),
        default_limit=HISTORY_DEFAULT,
        direction=DOWN,
    )
    body = _messages_body(call, channel, page.rows, page.next_cursor)
    return body | {"pin_count": 0, "channel_actions_ts": None, "channel_actions_count": 0}


def replies(call: ApiCall) -> Json:
    """A thread: its root first on each page, then replies oldest first."""
    channel = call.joined_channel()
    call.need_scope_for(channel, "history")
    named = channel.messages.get(call.required("ts"))
    if named is None:
        raise SlackError("thread_not_found")
    if named.thread_ts not in ("", named.ts):
        return _messages_body(call, channel, [named], "")
    inside = [reply for reply in replies_of(channel, named.ts) if _within(call, reply)]
    page = call.page(
        inside,
        _ts,
        scope=f"{_window(call, channel)}:{named.ts}",
        default_limit=REPLIES_DEFAULT,
    )
    return _messages_body(call, channel, [named, *page.rows], page.next_cursor)


def _ts(message: Message) -> str:
    return message.ts


def _window(call: ApiCall, channel: Channel) -> str:
    return f"{channel.channel_id}:{call.text('oldest')}:{call.text('latest')}"


def _within(call: ApiCall, message: Message) -> bool:
    """Bounds exclude their own message unless ``inclusive``, as Slack has it."""
    oldest, latest = (
        _bound(call, "oldest", "invalid_ts_oldest"),
        _bound(call, "latest", "invalid_ts_latest"),
    )
    if call.flag("inclusive"):
        return (not oldest or message.ts >= oldest) and (not latest or message.ts <= latest)
    return (not oldest or message.ts > oldest) and (not latest or message.ts < latest)


def _bound(call: ApiCall, name: str, error: str) -> str:
    text = call.text(name)
    try:
        return "" if text in ("", "0") else padded_ts(text)
    except ValueError:
        raise SlackError(error) from None


def _messages_body(call: ApiCall, channel: Channel, rows: list[Message], cursor: str) -> Json:
    call.served.extend(message.ts for message in rows)
    shown = [_shown(call, channel, message) for message in rows]
    metadata: Json = {"response_metadata": {"next_cursor": cursor}} if cursor else {}
    return {"messages": shown, "has_more": bool(cursor)} | metadata


def _shown(call: ApiCall, channel: Channel, message: Message) -> Json:
    body = message_json(call.world.slack, channel, message)
    if message.metadata and call.flag("include_all_metadata"):
        body["metadata"] = message.metadata
    return body


def join(call: ApiCall) -> Json:
    """The bot joins a public channel."""
    channel = call.visible_channel()
    if channel.is_private:
        raise SlackError("method_not_supported_for_channel_type")
    new = acts.join(call.world, channel, call.world.slack.users[call.caller.bot_user_id])
    warning = {} if new else {"warning": "already_in_channel"}
    return {"channel": _described(call, channel)} | warning


def open_conversation(call: ApiCall) -> Json:
    """The direct conversation of the bot and some people."""
    if call.text("channel"):
        channel = call.visible_channel()
        return {"channel": {"id": channel.channel_id}, "no_op": True, "already_open": True}
    people = [_addressee(call, user_id) for user_id in call.required("users").split(",")]
    call.need_scope("im:write" if len(people) == 1 else "mpim:write")
    members = [call.caller.bot_user_id, *(user.user_id for user in people)]
    channel, known = acts.open_direct(call.world, call.team.team_id, members)
    opened = _described(call, channel) if call.flag("return_im") else {"id": channel.channel_id}
    return {"channel": opened} | ({"no_op": True, "already_open": True} if known else {})


def _addressee(call: ApiCall, user_id: str) -> User:
    user = call.world.slack.users.get(user_id)
    if user is None:
        raise SlackError("user_not_found")
    if user.deleted:
        raise SlackError("user_disabled")
    return user
