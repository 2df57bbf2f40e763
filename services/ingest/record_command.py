"""RecordCommand: what a person asked for in Slack, durable before it is acknowledged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from services.ingest.identifiers import storable_id
from services.ingest.markup import storable
from services.ingest.queue import NewJob, enqueue
from services.ingest.record_event import Recorded
from services.ingest.resources import Resources
from services.ingest.teams import hold_installation, installed_for
from services.runtime import db
from services.runtime.callers import Caller, require_whole_workspace
from services.runtime.errors import invalid


@dataclass(frozen=True)
class AskedCommand:
    """A verified command. ``command`` holds the fields of a SlackCommand that are set."""

    team_id: str
    enterprise_id: str
    dedup_key: str
    command: Mapping[str, Any]


async def record_command(resources: Resources, caller: Caller, asked: AskedCommand) -> Recorded:
    """Record a command as a job whose payload is the SlackCommand as JSON.

    IGNORED: nothing is installed for the team. Raises CallError INVALID_ARGUMENT.
    """
    if not asked.dedup_key:
        raise invalid("dedup_key", "must be the command's trigger_id or event_id")
    installed = await installed_for(resources.queue_pool, asked.team_id, asked.enterprise_id)
    if installed is None:
        return Recorded.IGNORED
    require_whole_workspace(caller, installed.workspace_id)
    job = NewJob("command", storable_id(asked.dedup_key), _storable(asked.command))
    async with db.writing(resources.pool, installed.workspace_id) as connection:
        if not await hold_installation(connection, installed.workspace_id):
            return Recorded.IGNORED
        is_new = await enqueue(connection, installed.workspace_id, job)
    return Recorded.NEW if is_new else Recorded.DUPLICATE


def _storable(fields: Mapping[str, Any]) -> dict[str, Any]:
    """A JSON column refuses the escaped NUL that people's messages hold."""
    return {storable(name): _storable_value(value) for name, value in fields.items()}


def _storable_value(value: Any) -> Any:
    if isinstance(value, Mapping):
        return _storable(value)
    return storable(value) if isinstance(value, str) else value
