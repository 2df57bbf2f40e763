"""What the events left in the rows."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import psycopg

from bench.event_load import Event
from services.corpus import slack_message_id

# Reading history goes on for ever at its own pace; everything else ends.
_UNFINISHED = """
SELECT kind, count(*) FROM jobs
WHERE state IN ('ready', 'running') AND kind <> 'backfill'
GROUP BY kind ORDER BY kind"""
_DEAD = "SELECT count(*) FROM jobs WHERE state = 'dead'"
_JOBS = """
SELECT dedup_key, count(*), max(claim_number) FROM jobs
WHERE workspace_id = %s AND kind = 'event'
GROUP BY dedup_key"""
_MESSAGES = """
SELECT messages.message_id, messages.text, count(chunks.chunk_id)
FROM messages
LEFT JOIN chunk_messages AS part USING (workspace_id, message_id)
LEFT JOIN chunks
    ON chunks.workspace_id = part.workspace_id
    AND chunks.generation_id = part.generation_id
    AND chunks.chunk_id = part.chunk_id
    AND chunks.kind = 'message'
WHERE messages.workspace_id = %s
GROUP BY messages.message_id, messages.text"""
_ARCHIVE = "SELECT count(*) FROM messages WHERE workspace_id = %s"


@dataclass(frozen=True)
class Unfinished:
    """Jobs that wait or run, by kind, and how many were given up."""

    waiting: Mapping[str, int]
    dead: int


@dataclass(frozen=True)
class Effects:
    """Event ids by what is wrong with them, and how many jobs were claimed more than once."""

    lost: Sequence[str]
    twice: Sequence[str]
    ran_again: int


def unfinished(url: str) -> Unfinished:
    """What the queue holds."""
    waiting = {kind: count for kind, count in _rows(url, _UNFINISHED)}
    return Unfinished(waiting, _rows(url, _DEAD)[0][0])


def effects(
    url: str, workspace_id: str, load: Sequence[Event], acknowledged: Collection[str]
) -> Effects:
    """What became of each event, whose workspace has the id of its team."""
    jobs = {key: (count, claims) for key, count, claims in _rows(url, _JOBS, workspace_id)}
    stored: dict[str, list[tuple[str, int]]] = {}
    for message_id, text, chunks in _rows(url, _MESSAGES, workspace_id):
        stored.setdefault(text, []).append((message_id, chunks))
    lost, twice, ran_again = [], [], 0
    for event in load:
        message_id = slack_message_id(workspace_id, event.channel_id, event.ts)
        rows = stored.get(event.text, [])
        count, claims = jobs.get(event.event_id, (0, 0))
        indexed = any(stored_id == message_id and chunks > 0 for stored_id, chunks in rows)
        if event.event_id in acknowledged and not indexed:
            lost.append(event.event_id)
        if count > 1 or len(rows) > 1 or any(chunks > 1 for _, chunks in rows):
            twice.append(event.event_id)
        ran_again += claims > 1
    return Effects(lost, twice, ran_again)


def archive_messages(url: str, workspace_id: str) -> int:
    """How many messages of a workspace are stored."""
    return int(_rows(url, _ARCHIVE, workspace_id)[0][0])


def _rows(url: str, statement: str, *parameters: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(url) as connection:
        return connection.execute(statement.encode(), parameters).fetchall()
