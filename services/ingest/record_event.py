"""RecordEvent: one event of Slack, durable before it is acknowledged."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

from services.corpus import slack_message_id
from services.ingest.blocks import Json
from services.ingest.identifiers import storable_id
from services.ingest.purges import is_known, request_workspace_purge
from services.ingest.queue import NewJob, enqueue
from services.ingest.resources import Resources
from services.ingest.slack_event import (
    EnvelopeError,
    channel_id_of,
    deleted_ts_of,
    ends_installation,
    event_of,
    event_seconds_of,
    ids_only,
    needs_work,
)
from services.ingest.store import bury
from services.ingest.teams import (
    Installed,
    hold_installation,
    installed_for,
    was_installed_after,
)
from services.runtime import db
from services.runtime.callers import Caller, require_whole_workspace
from services.runtime.errors import invalid


@dataclass(frozen=True)
class SlackDelivery:
    """What the edge verified. ``envelope`` is the body as Slack sent it."""

    team_id: str
    enterprise_id: str
    event_id: str
    envelope: bytes


class Recorded(Enum):
    """What became of a delivery."""

    NEW = auto()
    DUPLICATE = auto()
    IGNORED = auto()


async def record_event(resources: Resources, caller: Caller, delivery: SlackDelivery) -> Recorded:
    """Record an event as a job and, for a deletion, its tombstone, in one transaction.

    The end of an installation asks for the purge of its workspace instead. IGNORED: nothing is
    installed for the team, or nothing stored can follow from the event. Raises CallError
    INVALID_ARGUMENT for an envelope that can not be read.
    """
    event = _read(delivery)
    installed = await installed_for(resources.queue_pool, delivery.team_id, delivery.enterprise_id)
    if installed is None:
        return Recorded.IGNORED
    require_whole_workspace(caller, installed.workspace_id)
    if not ends_installation(event) and not needs_work(event):
        return Recorded.IGNORED
    async with db.writing(resources.pool, installed.workspace_id) as connection:
        if not await hold_installation(connection, installed.workspace_id):
            return Recorded.IGNORED
        if ends_installation(event):
            return await _record_end(connection, installed, delivery)
        return await _record(connection, installed, delivery, event)


def _read(delivery: SlackDelivery) -> Json:
    if not delivery.event_id:
        raise invalid("event_id", "must be Slack's event_id")
    try:
        return event_of(delivery.envelope)
    except EnvelopeError as error:
        raise invalid("envelope_json", str(error)) from None


async def _record(
    connection: db.Connection, installed: Installed, delivery: SlackDelivery, event: Json
) -> Recorded:
    if deleted_ts := deleted_ts_of(event):
        message_id = slack_message_id(installed.team_id, channel_id_of(event), deleted_ts)
        await bury(connection, installed.workspace_id, [message_id])
    # The envelope stays text: a JSON column refuses the escaped NUL that people's messages hold.
    event_id = storable_id(delivery.event_id)
    payload = {
        "event_id": event_id,
        "event": ids_only(event),
        "envelope": delivery.envelope.decode("utf-8", "replace"),
    }
    job = NewJob("event", event_id, payload)
    is_new = await enqueue(connection, installed.workspace_id, job)
    return Recorded.NEW if is_new else Recorded.DUPLICATE


async def _record_end(
    connection: db.Connection, installed: Installed, delivery: SlackDelivery
) -> Recorded:
    """Purges go first in the queue. A repeated delivery finds no installation, or its purge.

    An end that Slack tells of after the app was installed anew is that of the former installation.
    """
    happened = event_seconds_of(delivery.envelope)
    if happened and await was_installed_after(connection, installed.workspace_id, happened):
        return await _ended_before(connection, installed, delivery)
    purge_id = _purge_id(delivery)
    if await is_known(connection, installed.workspace_id, purge_id):
        return Recorded.DUPLICATE
    await request_workspace_purge(connection, installed.workspace_id, purge_id)
    return Recorded.NEW


async def _ended_before(
    connection: db.Connection, installed: Installed, delivery: SlackDelivery
) -> Recorded:
    known = await is_known(connection, installed.workspace_id, _purge_id(delivery))
    return Recorded.DUPLICATE if known else Recorded.IGNORED


def _purge_id(delivery: SlackDelivery) -> str:
    return f"event-{storable_id(delivery.event_id)}"
