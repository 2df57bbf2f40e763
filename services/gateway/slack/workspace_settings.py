"""``/recall settings``: shows a workspace's settings to everybody; its admins change them."""

from __future__ import annotations

from collections.abc import Sequence

from recall.corpus.v1 import corpus_pb2
from recall.ingest.v1 import slack_pb2
from services.gateway.clients import reach
from services.gateway.slack.asker import Asker, Desk, readable_channels
from services.gateway.slack.blocks import escape
from services.gateway.slack.replies import Reply, told
from services.gateway.slack.setting_words import (
    HOW_TO_CHANGE,
    ONLY_ADMINS,
    read_change,
    setting_lines,
)

READ_SECONDS = 5.0


async def show_settings(
    context: corpus_pb2.QueryContext, coverage: Sequence[str], desk: Desk
) -> Reply:
    """What is indexed for the asker, and the settings in force. Raises CallError."""
    wanted = slack_pb2.GetSettingsRequest(workspace_id=context.workspace_id)
    reply = await reach("ingest", desk.stages.settings.GetSettings, wanted, READ_SECONDS)
    channels = await readable_channels(context, desk)
    names = ", ".join(f"#{escape(channel.name)}" for channel in channels) or "none yet"
    lines = [
        f"*Channels that you are in and I can read:* {names}",
        *setting_lines(reply.settings),
        *(escape(note) for note in coverage),
        HOW_TO_CHANGE,
    ]
    return told("\n".join(lines))


async def change_settings(asker: Asker, typed: str, desk: Desk) -> Reply:
    """Change one setting for an admin or owner, as Slack says now. Raises CallError, SlackError."""
    if not await _is_admin(asker):
        return told(escape(ONLY_ADMINS.format(typed=typed)))
    wanted = read_change(typed)
    if wanted is None:
        return told(HOW_TO_CHANGE)
    request = slack_pb2.UpdateSettingsRequest(workspace_id=asker.workspace_id, settings=wanted)
    reply = await reach("ingest", desk.stages.settings.UpdateSettings, request, READ_SECONDS)
    return told("\n".join(["Changed. From now on:", *setting_lines(reply.settings)]))


async def _is_admin(asker: Asker) -> bool:
    about = (await asker.client.call("users.info", user=asker.person_id)).get("user") or {}
    may = about.get("is_admin") is True or about.get("is_owner") is True
    return may and not about.get("deleted")
