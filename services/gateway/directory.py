"""Workspaces and channels as ingest lists them, kept for a few seconds."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from recall.ingest.v1 import ingest_pb2
from services.gateway.clients import Stages, reach

# A new channel, or one made private, is known everywhere after this long. A read takes about 2 ms.
KEEP_SECONDS = 2.0
LIST_SECONDS = 5.0
# Bounds what callers can make this process remember by naming workspaces.
MOST_KEPT = 1_000

T = TypeVar("T")


class Kept(Generic[T]):
    """Values by key, each for ``keep_seconds``; a failed read is never kept."""

    def __init__(self, clock: Callable[[], float], keep_seconds: float) -> None:
        self._clock = clock
        self._keep_seconds = keep_seconds
        self._values: dict[str, tuple[float, T]] = {}

    async def get(
        self,
        key: str,
        read: Callable[[], Awaitable[T]],
        is_enough: Callable[[T], bool] = lambda _: True,
    ) -> T:
        """The kept value when it ``is_enough``, else a freshly read one."""
        now = self._clock()
        kept = self._values.get(key)
        if kept is not None and now - kept[0] < self._keep_seconds and is_enough(kept[1]):
            return kept[1]
        value = await read()
        if len(self._values) >= MOST_KEPT:
            self._values.clear()
        self._values[key] = (now, value)
        return value


class Directory:
    """The names that a query context is built from. Raises CallError when ingest is away."""

    def __init__(
        self, stages: Stages, clock: Callable[[], float], keep_seconds: float = KEEP_SECONDS
    ) -> None:
        self._stages = stages
        self._workspaces = Kept[tuple[ingest_pb2.Workspace, ...]](clock, keep_seconds)
        self._channels = Kept[tuple[ingest_pb2.Channel, ...]](clock, keep_seconds)

    async def workspaces(self, wanted: str = "") -> tuple[ingest_pb2.Workspace, ...]:
        """Every workspace, by id. A wanted one that is not among the kept ones is looked for."""

        def is_known(kept: tuple[ingest_pb2.Workspace, ...]) -> bool:
            return any(wanted in ("", workspace.workspace_id) for workspace in kept)

        return await self._workspaces.get("", self._read_workspaces, is_known)

    async def channels(self, workspace_id: str) -> tuple[ingest_pb2.Channel, ...]:
        """Every channel of a workspace, by name."""
        return await self._channels.get(workspace_id, lambda: self._read_channels(workspace_id))

    async def _read_workspaces(self) -> tuple[ingest_pb2.Workspace, ...]:
        request = ingest_pb2.ListWorkspacesRequest()
        reply = await reach("ingest", self._stages.directory.ListWorkspaces, request, LIST_SECONDS)
        return tuple(reply.workspaces)

    async def _read_channels(self, workspace_id: str) -> tuple[ingest_pb2.Channel, ...]:
        request = ingest_pb2.ListChannelsRequest(workspace_id=workspace_id)
        reply = await reach("ingest", self._stages.directory.ListChannels, request, LIST_SECONDS)
        return tuple(reply.channels)
