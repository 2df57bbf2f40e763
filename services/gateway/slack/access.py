"""Which channels a person is in, as Slack says it now, or said it within the last minute."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import grpc
import structlog

from recall.ingest.v1 import ingest_pb2
from services.gateway.clients import Stages
from services.gateway.slack.web_api import SlackClient
from services.runtime.background import running

KEEP_SECONDS = 60.0
MOST_KEPT = 10_000
# The stream is opened anew now and then, so that one that died unnoticed does not last.
WATCH_SECONDS = 600.0
RECONNECT_SECONDS = 1.0

log = structlog.get_logger("access")


class Access:
    """Channel ids by person. What is fetched while a change arrives is not kept.

    ``changes`` counts those heard of.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._kept: dict[tuple[str, str], tuple[float, frozenset[str]]] = {}
        self.changes = 0

    async def channels(
        self, client: SlackClient, workspace_id: str, person_id: str, *, fresh: bool = False
    ) -> frozenset[str]:
        """Public and private channels that a person is in; a deactivated person is in none.

        ``fresh`` asks Slack whatever is kept. Raises SlackError: what is not known is not guessed.
        """
        key, now, changes = (workspace_id, person_id), self._clock(), self.changes
        kept = self._kept.get(key)
        if kept and not fresh and now - kept[0] < KEEP_SECONDS:
            return kept[1]
        found = await _channels_of(client, person_id)
        if changes == self.changes:
            if len(self._kept) >= MOST_KEPT:
                self._kept.clear()
            self._kept[key] = (now, found)
        return found

    def forget(self, workspace_id: str, person_id: str) -> None:
        """Somebody's channels changed; an empty id stands for everybody."""
        self.changes += 1
        self._kept = {
            key: value
            for key, value in self._kept.items()
            if (workspace_id and key[0] != workspace_id) or (person_id and key[1] != person_id)
        }


async def _channels_of(client: SlackClient, person_id: str) -> frozenset[str]:
    about = (await client.call("users.info", user=person_id)).get("user") or {}
    if about.get("deleted"):
        return frozenset()
    rows = client.pages(
        "users.conversations", "channels", user=person_id, types="public_channel,private_channel"
    )
    return frozenset([row["id"] async for row in rows])


@asynccontextmanager
async def watching(access: Access, stages: Stages) -> AsyncIterator[None]:
    """Forget what changes, for the length of the block."""
    async with running(_watch(access, stages)):
        yield


async def _watch(access: Access, stages: Stages) -> None:
    while True:
        # Whatever happened while nobody watched.
        access.forget("", "")
        request = ingest_pb2.WatchMembershipRequest()
        try:
            changes = stages.directory.WatchMembership(request, timeout=WATCH_SECONDS)
            async for change in changes:
                access.forget(change.workspace_id, change.person_id)
        except grpc.RpcError as error:
            if error.code() is not grpc.StatusCode.DEADLINE_EXCEEDED:
                log.warning("membership is not watched", code=error.code().name)
        await asyncio.sleep(RECONNECT_SECONDS)
