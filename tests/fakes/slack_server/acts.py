"""What happens in a Slack, whoever causes it: the change of the records and its events."""

from __future__ import annotations

from dataclasses import replace

from tests.fakes.slack_server import events
from tests.fakes.slack_server.identifiers import derived_id
from tests.fakes.slack_server.messages import (
    Change,
    Draft,
    delete_message,
    post_message,
    thread_root,
)
from tests.fakes.slack_server.state import (
    Channel,
    Ephemeral,
    Installation,
    Message,
    SlackError,
    User,
)
from tests.fakes.slack_server.world import World


def post(
    world: World, channel: Channel, draft: Draft, ts: str = "", *, silent: bool = False
) -> Message:
    """Post a message and send what Slack sends for it, unless ``silent``."""
    taken = channel.messages
    message = post_message(channel, draft, ts or world.message_ts(taken))
    if not silent:
        _announce_post(world, channel, message)
    return message


def _announce_post(world: World, channel: Channel, message: Message) -> None:
    world.publish(channel, events.message_event(world.slack, channel, message))
    if message.thread_ts and world.delivery.thread_parent_events:
        parent = events.parent_event(world.slack, channel, message, world.event_ts())
        world.publish(channel, parent)
    if _mentions_bot(world, channel, message):
        world.publish(channel, events.mention_event(world.slack, channel, message))


def _mentions_bot(world: World, channel: Channel, message: Message) -> bool:
    installation = world.slack.installation_of(channel.team_id)
    if installation is None or channel.kind == "im":
        return False
    bot = installation.bot_user_id
    return message.user != bot and (f"<@{bot}>" in message.text or f"<@{bot}|" in message.text)


def announce_change(world: World, channel: Channel, change: Change) -> None:
    """Send the event of a change or deletion of a message."""
    ts = world.event_ts()
    if change.after is None:
        world.publish(channel, events.deleted_event(channel, change, ts))
    else:
        world.publish(channel, events.changed_event(channel, change, ts))


def delete(world: World, channel: Channel, ts: str) -> None:
    """Delete a message; under replies it becomes a tombstone."""
    for change in delete_message(world.slack, channel, ts):
        announce_change(world, channel, change)


def show_only_to(world: World, channel: Channel, user: str, draft: Draft) -> Message:
    """Show a message to one person, beside the channel; no history and no event has it."""
    beside = Channel(channel.channel_id, channel.team_id, channel.name)
    shown = world.slack.ephemerals
    taken = {*channel.messages, *(entry.message.ts for entry in shown)}
    message = post_message(beside, replace(draft, thread=""), world.message_ts(taken))
    if draft.thread in channel.messages:
        message.thread_ts = thread_root(channel, draft.thread)
    shown.append(Ephemeral(channel.channel_id, user, message))
    return message


def join(world: World, channel: Channel, user: User) -> bool:
    """Add a member; False if they were in already."""
    if channel.archived:
        raise SlackError("is_archived")
    if user.user_id in channel.members:
        return False
    channel.members.append(user.user_id)
    world.publish(channel, events.member_event("joined", channel, user, world.event_ts()))
    return True


def leave(world: World, channel: Channel, user: User) -> None:
    """Remove a member; the app's own bot learns it by ``channel_left``."""
    if user.user_id not in channel.members:
        raise SlackError("not_in_channel")
    # Sent while the bot still sees the channel, so that it hears of its own leaving.
    world.publish(channel, events.member_event("left", channel, user, world.event_ts()))
    installation = world.slack.installation_of(channel.team_id)
    if installation and user.user_id == installation.bot_user_id:
        left = events.channel_left_event(channel, user.user_id, world.event_ts())
        world.publish(channel, left)
    channel.members.remove(user.user_id)


def open_direct(world: World, team_id: str, members: list[str]) -> tuple[Channel, bool]:
    """The direct conversation of some people, and whether it had been there."""
    people = sorted(set(members))
    kind_prefix = "D" if len(people) <= 2 else "G"
    channel_id = derived_id(kind_prefix, team_id, *people)
    known = world.slack.channels.get(channel_id)
    if known:
        return known, True
    name = "" if kind_prefix == "D" else "mpdm-" + "--".join(p.lower() for p in people) + "-1"
    channel = Channel(channel_id, team_id, name, "im" if kind_prefix == "D" else "mpim")
    channel.members, channel.created = people, int(world.now())
    world.slack.channels[channel_id] = channel
    return channel, False


def revoke(world: World, installation: Installation, team_id: str) -> None:
    """Revoke the tokens of an installation and tell the app."""
    world.send([installation], events.tokens_revoked_event(installation), team_id)
    installation.revoked = True


def uninstall(world: World, installation: Installation, team_id: str) -> None:
    """Remove the app from a workspace: its bot leaves, its tokens end, the app is told."""
    for event in (events.tokens_revoked_event(installation), events.uninstalled_event()):
        world.send([installation], event, team_id)
    installation.uninstalled = True
    for channel in world.slack.channels_of(team_id):
        if installation.bot_user_id in channel.members:
            channel.members.remove(installation.bot_user_id)
