"""Envelopes of events as Slack sends them."""

from __future__ import annotations

import itertools
import json

from recall.ingest.v1 import slack_pb2
from tests import builders as b

BOT_USER = "U0RECALL"
BOT = "B0RECALL"

_numbers = itertools.count(1)


# 09:00 of the builders' day.
EVENT_TIME = 1_772_442_000


def envelope(
    event: b.Record, event_id: str, team_id: str = b.TEAM, event_time: object = EVENT_TIME
) -> bytes:
    """The body of a delivery."""
    return json.dumps(
        {
            "type": "event_callback",
            "team_id": team_id,
            "context_team_id": team_id,
            "api_app_id": "A0RECALL",
            "event_id": event_id,
            "event_time": event_time,
            "event": event,
        }
    ).encode()


def delivery(
    event: b.Record, event_id: str = "", team_id: str = b.TEAM, event_time: object = EVENT_TIME
) -> slack_pb2.RecordEventRequest:
    """A delivery of an event; without an id it is one that was never sent before."""
    event_id = event_id or f"Ev{next(_numbers):08}"
    return slack_pb2.RecordEventRequest(
        team_id=team_id,
        event_id=event_id,
        envelope_json=envelope(event, event_id, team_id, event_time),
    )


def posted(text: str, second: int = 0, /, **fields: object) -> b.Record:
    """A message event of a public channel."""
    record = b.slack_record(text, second)
    place = {"channel": b.GENERAL, "channel_type": "channel", "event_ts": record["ts"]}
    return {**record, **place, **fields}


def changed(before: b.Record, after: b.Record, second: int, channel: str = b.GENERAL) -> b.Record:
    """message_changed, seen some seconds after 09:00."""
    return _about(channel, second) | {
        "subtype": "message_changed",
        "hidden": True,
        "message": after,
        "previous_message": before,
    }


def edited(text: str, second: int, edited_second: int, **fields: object) -> b.Record:
    """The new version of a message."""
    mark = {"user": "U1", "ts": b.ts_of(edited_second)}
    return b.slack_record(text, second, edited=mark, **fields)


def deleted(second: int, at: int = 900, channel: str = b.GENERAL, **fields: object) -> b.Record:
    """message_deleted; its own ts is that of the deletion."""
    return (
        _about(channel, at)
        | {
            "subtype": "message_deleted",
            "hidden": True,
            "deleted_ts": b.ts_of(second),
            "previous_message": b.slack_record("what was there", second),
        }
        | fields
    )


def tombstone(second: int, **fields: object) -> b.Record:
    """What Slack leaves of a deleted root that has replies."""
    return {
        "type": "message", "subtype": "tombstone", "user": "USLACKBOT", "hidden": True,
        "text": "This message was deleted.", "ts": b.ts_of(second), "thread_ts": b.ts_of(second),
        "reply_count": 2, **fields,
    }  # fmt: skip


def about_channel(
    kind: str, channel: object = b.GENERAL, at: int = 900, **fields: object
) -> b.Record:
    """An event of a channel, such as channel_left."""
    return {"type": kind, "channel": channel, "event_ts": b.ts_of(at), **fields}


def member(kind: str, person: str, at: int, channel: str = b.GENERAL) -> b.Record:
    """member_joined_channel or member_left_channel; ``kind`` is "joined" or "left"."""
    return {
        "type": f"member_{kind}_channel", "user": person, "channel": channel,
        "channel_type": "C", "team": b.TEAM, "event_ts": b.ts_of(at),
    }  # fmt: skip


def _about(channel: str, second: int) -> b.Record:
    return {
        "type": "message", "channel": channel, "channel_type": "channel",
        "ts": b.ts_of(second), "event_ts": b.ts_of(second),
    }  # fmt: skip
