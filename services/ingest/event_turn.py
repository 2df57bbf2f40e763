"""What the handlers of one event work with."""

from __future__ import annotations

from dataclasses import dataclass

from services.ingest.blocks import Json
from services.ingest.import_batch import open_scope
from services.ingest.resources import Resources
from services.ingest.slack_event import channel_id_of, event_ts_of, person_id_of
from services.ingest.thread_index import Scope
from services.ingest.workspaces import Workspace
from services.runtime import db


@dataclass(frozen=True)
class Turn:
    """One event inside the transaction that makes it true.

    ``has_words`` is false for an event that was given up and is tried again: then only its ids are
    left, and Slack has to be asked.
    """

    resources: Resources
    connection: db.Connection
    workspace: Workspace
    event_id: str
    event: Json
    has_words: bool

    @property
    def workspace_id(self) -> str:
        """The workspace's id."""
        return self.workspace.workspace_id

    @property
    def channel_id(self) -> str:
        """The channel that the event is about; empty without one."""
        return channel_id_of(self.event)

    @property
    def person_id(self) -> str:
        """The person that the event is about; empty without one."""
        return person_id_of(self.event)

    @property
    def ts(self) -> str:
        """When Slack saw it happen."""
        return event_ts_of(self.event)

    async def scope(self) -> Scope:
        """The scope in which messages are written."""
        return await open_scope(self.connection, self.workspace, self.resources)
