"""What a POST to a ``response_url`` does: five times within thirty minutes."""

from __future__ import annotations

from tests.fakes.slack_server import acts
from tests.fakes.slack_server.blocks import check_message
from tests.fakes.slack_server.messages import Draft, change_message
from tests.fakes.slack_server.rich_text import rich_text_blocks
from tests.fakes.slack_server.state import (
    Channel,
    Ephemeral,
    Json,
    Message,
    ResponseUrl,
    SlackError,
)
from tests.fakes.slack_server.world import World


def respond(world: World, key: str, body: Json) -> None:
    """Post, replace or delete as the body says; raises SlackError when the place is spent.

    ``replace_original`` and ``delete_original`` concern the message that was clicked. A slash
    command has no such message, so there a replacement is a new message.
    """
    place = world.slack.response_urls.get(key)
    if place is None:
        raise SlackError("no_service")
    if world.now() >= place.expires_at:
        raise SlackError("expired_url")
    if place.uses_left < 1:
        raise SlackError("used_url")
    channel = world.slack.channels.get(place.channel_id)
    if channel is None:
        raise SlackError("channel_not_found")
    _perform(world, place, channel, body)
    place.uses_left -= 1
    place.uses += 1


def _perform(world: World, place: ResponseUrl, channel: Channel, body: Json) -> None:
    if body.get("delete_original"):
        _delete_original(world, place, channel)
        return
    check_message(body.get("text", ""), body.get("blocks"), body.get("attachments"))
    if body.get("replace_original") and place.original_ts:
        _replace_original(world, place, channel, body)
        return
    draft = _draft(world, place, channel, body)
    if body.get("response_type") == "in_channel":
        acts.post(world, channel, draft)
    else:
        acts.show_only_to(world, channel, place.user_id, draft)


def _draft(world: World, place: ResponseUrl, channel: Channel, body: Json) -> Draft:
    installation = world.slack.installation_of(place.team_id)
    if installation is None:
        raise SlackError("account_inactive")
    thread = str(body.get("thread_ts") or place.thread_ts)
    return Draft(
        installation.bot_user_id,
        str(body.get("text", "")),
        thread=thread if thread in channel.messages else "",
        bot_id=installation.bot_id,
        team=place.team_id,
        lists={name: body.get(name) or [] for name in ("blocks", "attachments")},
    )


def _original_ephemeral(world: World, place: ResponseUrl) -> Ephemeral | None:
    for entry in world.slack.ephemerals:
        if (entry.channel_id, entry.user) == (place.channel_id, place.user_id) and (
            entry.message.ts == place.original_ts
        ):
            return entry
    return None


def _delete_original(world: World, place: ResponseUrl, channel: Channel) -> None:
    entry = _original_ephemeral(world, place)
    if entry:
        world.slack.ephemerals.remove(entry)
    elif place.original_ts in channel.messages:
        acts.delete(world, channel, place.original_ts)
    else:
        raise SlackError("message_not_found")


def _replace_original(world: World, place: ResponseUrl, channel: Channel, body: Json) -> None:
    def rewrite(message: Message) -> None:
        message.text = str(body.get("text", ""))
        message.blocks = body.get("blocks") or rich_text_blocks(message.text, "r")
        message.attachments = body.get("attachments") or []

    entry = _original_ephemeral(world, place)
    if entry:
        rewrite(entry.message)
    else:
        change = change_message(world.slack, channel, place.original_ts, rewrite)
        acts.announce_change(world, channel, change)
