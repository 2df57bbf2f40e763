"""Who asks in Slack and what they may read: the channels they are in, as far as indexed."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

from recall.corpus.v1 import corpus_pb2
from recall.ingest.v1 import ingest_pb2
from services.corpus import slack_message_id
from services.gateway.clients import Stages
from services.gateway.directory import Directory
from services.gateway.slack.access import Access
from services.gateway.slack.installations import Installations
from services.gateway.slack.web_api import SlackClient, SlackError

MOST_NAMES = 5


@dataclass(frozen=True)
class Desk:
    """What a worker answers with."""

    stages: Stages
    directory: Directory
    installations: Installations
    access: Access


@dataclass(frozen=True)
class Asker:
    """A person in a workspace, and a client of the app that is installed there."""

    workspace_id: str
    person_id: str
    client: SlackClient

    @property
    def hashed(self) -> str:
        """An opaque name of the person for the writing provider."""
        return hashlib.sha256(f"{self.workspace_id}:{self.person_id}".encode()).hexdigest()

    def message_id(self, channel_id: str, ts: str) -> str:
        """Id of a message of this workspace."""
        return slack_message_id(self.client.bot.team_id, channel_id, ts)


async def query_context(
    asker: Asker, desk: Desk, *, fresh: bool = False
) -> corpus_pb2.QueryContext:
    """The asker's channels that are indexed. ``fresh`` asks Slack again, whatever is kept.

    Raises SlackError and CallError: rights that are not known are never guessed.
    """
    own = await desk.access.channels(asker.client, asker.workspace_id, asker.person_id, fresh=fresh)
    indexed = await desk.directory.channels(asker.workspace_id)
    return corpus_pb2.QueryContext(
        source=corpus_pb2.SOURCE_SLACK,
        workspace_id=asker.workspace_id,
        channel_ids=sorted(c.channel_id for c in indexed if c.channel_id in own),
    )


async def readable_channels(
    context: corpus_pb2.QueryContext, desk: Desk
) -> list[ingest_pb2.Channel]:
    """The channels of a context with their names."""
    indexed = await desk.directory.channels(context.workspace_id)
    return [channel for channel in indexed if channel.channel_id in context.channel_ids]


async def names_of(client: SlackClient, person_ids: Iterable[str]) -> dict[str, str]:
    """Names of the first few people; those whom Slack does not tell stay ids."""
    names: dict[str, str] = {}
    for person_id in list(person_ids)[:MOST_NAMES]:
        try:
            about = (await client.call("users.info", user=person_id)).get("user") or {}
        except SlackError:
            continue
        profile = about.get("profile") or {}
        name = profile.get("display_name") or about.get("real_name") or about.get("name")
        names[person_id] = str(name or person_id)
    return names
