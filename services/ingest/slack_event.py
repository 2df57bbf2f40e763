"""Understanding of one event of Slack: what it is about and whether it needs work. Pure."""

from __future__ import annotations

from services.ingest.authors import child
from services.ingest.blocks import Json, dicts, string
from services.ingest.directory import ChannelKind, Directory
from services.ingest.identifiers import storable_id
from services.ingest.markup import storable
from services.ingest.records import (
    Place,
    decode_json,
    is_notice_or_copy,
    own_record,
    read_deletion,
    read_slack_message,
)
from services.ingest.timestamps import exact_ts

_CHANNEL_CHANGES = frozenset({"rename", "archive", "unarchive", "deleted", "left"})
_OTHERS = frozenset(
    {
        "channel_created",
        "channel_id_changed",
        "channel_shared",
        "channel_unshared",
        "member_joined_channel",
        "member_left_channel",
        "team_join",
        "user_change",
    }
)
_MADE_PRIVATE = "channel_convert_to_private"
# What of an event names things and holds no words. A dead job keeps these.
_IDS = (
    "type",
    "subtype",
    "channel_type",
    "ts",
    "thread_ts",
    "event_ts",
    "old_channel_id",
    "new_channel_id",
)
# channel_type of message events, and the letters of member events.
_KINDS = {
    "channel": ChannelKind.PUBLIC,
    "C": ChannelKind.PUBLIC,
    "im": ChannelKind.DIRECT,
    "mpim": ChannelKind.GROUP_DIRECT,
}
_DIRECT_KINDS = (ChannelKind.DIRECT, ChannelKind.GROUP_DIRECT)
_NOWHERE = Place("", "", "", Directory())


# The end of the year 9999; PostgreSQL's instants go further.
MOST_SECONDS = 253_402_300_799


class EnvelopeError(ValueError):
    """The bytes are no envelope of an event; the message says what they are."""


def event_of(envelope: bytes) -> Json:
    """The event inside an envelope, its numbers without a float. Raises EnvelopeError."""
    try:
        decoded = decode_json(envelope)
    except ValueError as error:
        raise EnvelopeError(f"is not JSON ({error})") from None
    event = decoded.get("event") if isinstance(decoded, dict) else None
    if not isinstance(event, dict) or not string(event.get("type")):
        raise EnvelopeError("holds no event with a type")
    return event


def event_seconds_of(envelope: bytes) -> int:
    """The envelope's ``event_time``: the second in which it happened; 0 when it names none."""
    decoded = decode_json(envelope)
    told = decoded.get("event_time") if isinstance(decoded, dict) else None
    if not isinstance(told, int) or isinstance(told, bool):
        return 0
    return told if 0 < told <= MOST_SECONDS else 0


def type_of(event: Json) -> str:
    """The event's type, without whether the channel is a private one ("group_left")."""
    given = string(event.get("type"))
    prefix, _, change = given.partition("_")
    return f"channel_{change}" if prefix == "group" and change in _CHANNEL_CHANGES else given


def ends_installation(event: Json) -> bool:
    """Whether the app was removed, or its bot's token revoked; a person's token is no matter."""
    if event.get("type") == "tokens_revoked":
        return bool(child(event, "tokens").get("bot"))
    return event.get("type") == "app_uninstalled"


def needs_work(event: Json) -> bool:
    """Whether anything stored can follow from the event."""
    name = type_of(event)
    if name != "message":
        return name in _OTHERS or name.removeprefix("channel_") in _CHANNEL_CHANGES
    if not channel_id_of(event):
        return False
    if deleted_ts_of(event) or made_private(event):
        return True
    is_direct = channel_kind_of(event) in _DIRECT_KINDS
    return not is_direct and not is_notice_or_copy(string(own_record(event).get("subtype")))


def made_private(event: Json) -> bool:
    """Whether a channel's own notice says that it is private from now on."""
    return event.get("type") == "message" and event.get("subtype") == _MADE_PRIVATE


def channel_id_of(event: Json) -> str:
    """The channel, given as an id or as an object."""
    channel = event.get("channel")
    return storable_id(string(child(event, "channel").get("id") or channel))


def person_id_of(event: Json) -> str:
    """The person, given as an id or as an object."""
    return storable_id(string(child(event, "user").get("id") or event.get("user")))


def event_ts_of(event: Json) -> str:
    """When Slack saw it happen, as an exact ts; empty when it does not tell."""
    return exact_ts(event.get("event_ts")) or exact_ts(event.get("ts")) or ""


def channel_kind_of(event: Json) -> ChannelKind:
    """Who can see the channel. A channel that nothing says is public is private."""
    described = child(event, "channel")
    if described.get("is_im") is True or channel_id_of(event).startswith("D"):
        return ChannelKind.DIRECT
    if described.get("is_mpim") is True:
        return ChannelKind.GROUP_DIRECT
    if described.get("is_private") is True or string(event.get("type")).startswith("group_"):
        return ChannelKind.PRIVATE
    if event.get("type") in ("channel_created", "channel_rename"):
        return ChannelKind.PUBLIC
    return _KINDS.get(string(event.get("channel_type")), ChannelKind.PRIVATE)


def deleted_ts_of(event: Json) -> str:
    """ts of the message that a message event says is gone; empty for any other event."""
    if event.get("type") != "message":
        return ""
    deletion = read_deletion(event, _NOWHERE)
    return deletion.ts if deletion else ""


def says_nothing_new(event: Json, place: Place) -> bool:
    """Whether a change brought no words: a link's preview, or new numbers of a thread.

    False when the event does not tell what was there before.
    """
    before = child(event, "previous_message")
    if event.get("subtype") != "message_changed" or not before:
        return False
    readings = [
        read_slack_message(_without_previews(version), place)
        for version in (before, child(event, "message"))
    ]
    return readings[0] == readings[1]


def ids_only(event: Json) -> dict[str, str]:
    """The event without its words: enough to finish a deletion or to ask Slack again."""
    kept = {key: storable(string(event[key])) for key in _IDS if string(event.get(key))}
    kept["channel"] = channel_id_of(event)
    kept["user"] = person_id_of(event)
    if deleted := deleted_ts_of(event):
        kept |= {"subtype": "message_deleted", "deleted_ts": deleted}
    elif ts := exact_ts(own_record(event).get("ts")):
        kept["ts"] = ts
    return {key: value for key, value in kept.items() if value}


def _without_previews(record: Json) -> Json:
    """A message without what Slack or an app made of its links."""
    attachments = dicts(record.get("attachments"))
    own = [entry for entry in attachments if not entry.get("from_url")]
    return {**record, "attachments": own}
