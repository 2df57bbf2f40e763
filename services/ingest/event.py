"""The job "event": makes events of Slack true in the rows.

Each run is one transaction under the workspace's lock, and it writes only for claims that are
current: what a purge deleted, or another worker took over, is left alone. Running it again changes
nothing, and events handled together leave what they would leave one after the other. When the job
ends, done or dead, the queue drops the envelope from its payload; a dead event that is tried again
has its ids only: a deletion is finished from them, words are asked of Slack again by reading the
channel's history.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from itertools import groupby

from services.ingest.blocks import Json
from services.ingest.change_channel_id import change_channel_id
from services.ingest.channel_events import (
    on_channel_archive,
    on_channel_gone,
    on_channel_named,
    on_channel_shared,
    on_channel_unarchive,
    on_channel_unshared,
)
from services.ingest.event_turn import Turn
from services.ingest.message_events import on_messages
from services.ingest.people_events import on_member_joined, on_member_left, on_person
from services.ingest.purges import read_hold
from services.ingest.queue import Job, still_held
from services.ingest.resources import Resources
from services.ingest.slack_event import deleted_ts_of, event_of, type_of
from services.ingest.versions import edit_order
from services.ingest.workspaces import changing, read_workspace

_MOVES = "channel_id_changed"
_HANDLERS: dict[str, Callable[[Turn], Awaitable[None]]] = {
    "channel_created": on_channel_named,
    "channel_rename": on_channel_named,
    "channel_archive": on_channel_archive,
    "channel_unarchive": on_channel_unarchive,
    "channel_shared": on_channel_shared,
    "channel_unshared": on_channel_unshared,
    "channel_deleted": on_channel_gone,
    "channel_left": on_channel_gone,
    "member_joined_channel": on_member_joined,
    "member_left_channel": on_member_left,
    "user_change": on_person,
    "team_join": on_person,
}


async def handle_event(resources: Resources, job: Job) -> None:
    """Handle one event. An event of an unknown kind is ignored."""
    await handle_events(resources, [job])


async def handle_events(resources: Resources, jobs: Sequence[Job]) -> None:
    """Handle events of one workspace in the order given, as far as possible in one transaction.

    A channel that gets another id moves in transactions of its own.
    """
    told = [(job, _event(job)) for job in jobs]
    for moves, group in groupby(told, key=lambda each: type_of(each[1]) == _MOVES):
        if moves:
            for job, event in group:
                await change_channel_id(resources, job, event)
        else:
            await _handle_together(resources, list(group))


def _event(job: Job) -> Json:
    envelope = job.payload.get("envelope")
    event: Json = event_of(envelope.encode()) if envelope else job.payload["event"]
    return event


async def _handle_together(resources: Resources, told: Sequence[tuple[Job, Json]]) -> None:
    workspace_id = told[0][0].workspace_id
    async with changing(resources.pool, workspace_id) as connection:
        held = await still_held(connection, [job for job, _ in told])
        if not held:
            return
        workspace = await read_workspace(connection, workspace_id)
        turns = [
            Turn(
                resources,
                connection,
                workspace,
                job.payload["event_id"],
                event,
                bool(job.payload.get("envelope")),
            )
            for job, event in told
            if job in held
        ]
        for are_messages, group in groupby(turns, key=_is_of_message):
            if are_messages:
                await on_messages(await _without_purged(list(group)))
            else:
                for turn in group:
                    await _handle_other(turn)


def _is_of_message(turn: Turn) -> bool:
    return type_of(turn.event) == "message"


async def _handle_other(turn: Turn) -> None:
    handler = _HANDLERS.get(type_of(turn.event))
    if handler is not None and await _without_purged([turn]):
        await handler(turn)


async def _without_purged(turns: Sequence[Turn]) -> list[Turn]:
    """Those that did not happen before a purge of their channel, and every deletion.

    None of them may change what a purge holds back.
    """
    holds = {
        turn.channel_id: await read_hold(turn.connection, turn.workspace_id, turn.channel_id)
        for turn in {turn.channel_id: turn for turn in turns if turn.channel_id}.values()
    }
    return [
        turn
        for turn in turns
        if deleted_ts_of(turn.event) or not _is_before(turn.ts, holds.get(turn.channel_id, ""))
    ]


def _is_before(ts: str, hold_ts: str) -> bool:
    return bool(hold_ts) and edit_order(ts, None) <= edit_order(hold_ts, None)
