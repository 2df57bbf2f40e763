"""What may happen to messages of a channel, and the values before and after.

Pure but for the channel they are given: no clock, no events. Raises SlackError where Slack does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field

from tests.fakes.slack_server.rendering import TOMBSTONE_TEXT, message_json, replies_of
from tests.fakes.slack_server.rich_text import rich_text_blocks
from tests.fakes.slack_server.state import Channel, Json, Message, Slack, SlackError

SLACKBOT = "USLACKBOT"
_FIELDS = ("blocks", "attachments", "files")


@dataclass(frozen=True)
class Draft:
    """A message about to be posted. ``thread`` is any message of the thread, or ""."""

    user: str
    text: str
    thread: str = ""
    broadcast: bool = False
    subtype: str = ""
    bot_id: str = ""
    username: str = ""
    team: str = ""
    client_msg_id: str = ""
    metadata: Json | None = None
    lists: Mapping[str, list[Json]] = field(default_factory=dict)


@dataclass(frozen=True)
class Change:
    """A message's JSON before and after; ``after`` is None once it is gone."""

    ts: str
    before: Json
    after: Json | None


def post_message(channel: Channel, draft: Draft, ts: str) -> Message:
    """Store a message; what people write gets a rich_text block."""
    message = Message(ts, draft.user, draft.text, team=draft.team)
    message.subtype = _subtype(draft)
    message.thread_ts = thread_root(channel, draft.thread) if draft.thread else ""
    message.bot_id, message.username = draft.bot_id, draft.username
    message.client_msg_id, message.metadata = draft.client_msg_id, deepcopy(draft.metadata)
    for name in _FIELDS:
        setattr(message, name, deepcopy(list(draft.lists.get(name, ()))))
    if not message.blocks and not draft.bot_id:
        message.blocks = rich_text_blocks(draft.text, f"b{ts[-6:]}")
    channel.messages[ts] = message
    if message.thread_ts:
        channel.threads.setdefault(message.thread_ts, []).append(ts)
    return message


def _subtype(draft: Draft) -> str:
    if draft.subtype:
        return draft.subtype
    if draft.thread and draft.broadcast:
        return "thread_broadcast"
    return "file_share" if draft.lists.get("files") else ""


def thread_root(channel: Channel, ts: str) -> str:
    """The root of the thread that a message is in."""
    found = channel.messages.get(ts)
    if found is None:
        raise SlackError("thread_not_found")
    return found.thread_ts or found.ts


def find_message(channel: Channel, ts: str) -> Message:
    """The message of a timestamp; one deleted under its replies is not found."""
    message = channel.messages.get(ts)
    if message is None or message.subtype == "tombstone":
        raise SlackError("message_not_found")
    return message


def edit_message(slack: Slack, channel: Channel, ts: str, text: str, edited: Json) -> Change:
    """A person's edit: the text, its block and the ``edited`` stamp change."""

    def rewrite(message: Message) -> None:
        message.text, message.edited = text, edited
        message.blocks = rich_text_blocks(text, f"e{edited['ts'][-6:]}")

    return change_message(slack, channel, ts, rewrite)


def unfurl_message(slack: Slack, channel: Channel, ts: str, url: str, text: str) -> Change:
    """A link preview: an attachment more, and no ``edited`` stamp."""

    def preview(message: Message) -> None:
        number = len(message.attachments) + 1
        attachment = {"id": number, "from_url": url, "original_url": url, "title_link": url}
        message.attachments.append(attachment | {"title": url, "text": text, "fallback": text})

    return change_message(slack, channel, ts, preview)


def change_message(
    slack: Slack, channel: Channel, ts: str, change: Callable[[Message], None]
) -> Change:
    """Any change of a message in place."""
    message = find_message(channel, ts)
    before = message_json(slack, channel, message)
    change(message)
    return Change(ts, before, message_json(slack, channel, message))


def delete_message(slack: Slack, channel: Channel, ts: str) -> list[Change]:
    """Delete a message; a root with replies becomes a tombstone, an emptied tombstone goes."""
    message = find_message(channel, ts)
    before = message_json(slack, channel, message)
    if replies_of(channel, ts):
        channel.messages[ts] = Message(
            ts, SLACKBOT, TOMBSTONE_TEXT, subtype="tombstone", thread_ts=ts
        )
        return [Change(ts, before, message_json(slack, channel, channel.messages[ts]))]
    del channel.messages[ts]
    if message.thread_ts:
        channel.threads[message.thread_ts].remove(ts)
    return [Change(ts, before, None), *_emptied_root(slack, channel, message.thread_ts)]


def _emptied_root(slack: Slack, channel: Channel, root_ts: str) -> list[Change]:
    root = channel.messages.get(root_ts)
    if root is None or root.subtype != "tombstone" or replies_of(channel, root_ts):
        return []
    before = message_json(slack, channel, root)
    del channel.messages[root_ts]
    return [Change(root_ts, before, None)]


def top_level(channel: Channel) -> list[Message]:
    """What ``conversations.history`` lists, newest first: no plain replies."""
    shown = [
        message
        for message in channel.messages.values()
        if message.thread_ts in ("", message.ts) or message.subtype == "thread_broadcast"
    ]
    return sorted(shown, key=lambda message: message.ts, reverse=True)
