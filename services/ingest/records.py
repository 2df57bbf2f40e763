"""Understanding of one raw record: a message, a deletion, or a named reason to leave it out."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from services.corpus import SLACK_POST_TYPE, Source, content_sha256, slack_message_id
from services.ingest.authors import author_of, child
from services.ingest.blocks import Json, string
from services.ingest.directory import Directory
from services.ingest.markup import storable
from services.ingest.message_text import file_title, files_of, readable_text
from services.ingest.threads import root_ts
from services.ingest.timestamps import exact_ts, instant_of

# What Slack itself says about a conversation; nobody wrote it.
_NOTICE_PREFIXES = ("channel_", "group_", "app_conversation_", "sh_room_", "huddle_")
_NOTICES = frozenset(
    {
        "pinned_item",
        "unpinned_item",
        "bot_add",
        "bot_remove",
        "bot_enable",
        "bot_disable",
        "reminder_add",
        "reminder_delete",
        "ekm_access_denied",
        "joiner_notification",
        "joiner_notification_for_inviter",
        "tabbed_canvas_updated",
        "assistant_app_thread",
    }
)
# Rows that repeat a message which has a row of its own.
_COPIES = frozenset({"message_replied", "reply_broadcast"})
_DELETED_PHRASE = "This message was deleted."


class SkipReason(StrEnum):
    """Why a record is not indexed. The values are the keys of the import's report."""

    NOT_JSON = "not_json"
    NOT_A_MESSAGE = "not_a_message"
    NO_TIMESTAMP = "no_timestamp"
    BAD_TIMESTAMP = "bad_timestamp"
    NOTICE = "notice"
    NO_TEXT = "no_text"
    REPLY_COPY = "reply_copy"
    BOT_SWITCHED_OFF = "bot_switched_off"
    OWN_ANSWER = "own_answer"
    MISSING_FIELD = "missing_field"


@dataclass(frozen=True)
class Place:
    """Where a Slack record stood. ``team_id`` is the workspace's own, never an author's."""

    team_id: str
    channel_id: str
    channel_name: str
    directory: Directory
    index_bots: bool = True


@dataclass(frozen=True)
class IncomingMessage:
    """A message to store. Texts and names are readable and storable.

    ``ts`` and ``thread_root_ts`` are Slack's text with six decimals, empty for JSON lines.
    A message outside any thread is its own root. ``author_name`` is the directory's, else the
    record's own, else empty: then nobody names the author. ``author_id`` is empty when the record
    tells nothing about its author. ``author_team_id`` is the author's home team, where told.
    ``file_stubs`` counts files of which the archive kept not even a name.
    """

    message_id: str
    source: Source
    channel_id: str
    channel_name: str
    author_id: str
    author_name: str
    posted_at: datetime
    text: str
    thread_root_id: str
    edited_at: datetime | None = None
    ts: str = ""
    edited_ts: str = ""
    thread_root_ts: str = ""
    author_team_id: str = ""
    is_bot: bool = False
    file_stubs: int = 0

    @property
    def content_sha256(self) -> str:
        """Hash of what an edit can change."""
        return content_sha256(self.text, self.author_id, self.edited_at)


@dataclass(frozen=True)
class DeletedMessage:
    """A message that Slack says is gone: leave a tombstone. Replies to it stay."""

    message_id: str
    channel_id: str
    ts: str


@dataclass(frozen=True)
class Skipped:
    """A record that is not indexed. ``detail`` names the cause for a person; it holds no text."""

    reason: SkipReason
    detail: str = ""
    ts: str = ""


Reading = IncomingMessage | DeletedMessage | Skipped


def read_slack_record(raw: bytes, place: Place) -> Reading:
    """One record of a Slack export, as UTF-8 JSON. Never raises on any bytes."""
    try:
        return read_slack_message(decode_json(raw), place)
    except ValueError as error:
        return Skipped(SkipReason.NOT_JSON, str(error))


def read_slack_message(record: object, place: Place) -> Reading:
    """One decoded Slack message (export, history page or event). Never raises on any value.

    Numbers must have been decoded without a float (``decode_json``), so that ts stays exact.
    """
    if not isinstance(record, dict) or string(record.get("type")) not in ("", "message"):
        return Skipped(SkipReason.NOT_A_MESSAGE)
    return _read_plain(own_record(record), place)


def own_record(record: Json) -> Json:
    """The message that a record tells of: of a change the new version, of a deletion its rest."""
    if record.get("subtype") == "message_deleted":
        gone = exact_ts(record.get("deleted_ts")) or child(record, "previous_message").get("ts")
        return {"ts": gone, "subtype": "tombstone"}
    if record.get("subtype") == "message_changed":
        return child(record, "message")
    return record


def read_deletion(record: Json, place: Place) -> DeletedMessage | None:
    """The message that a record says is gone, in each shape in which Slack says it."""
    own = own_record(record)
    reading = _read_plain(own, place) if _is_tombstone(own) else None
    return reading if isinstance(reading, DeletedMessage) else None


def is_notice_or_copy(subtype: str) -> bool:
    """Whether rows of a subtype are never indexed, whatever they hold."""
    return subtype in _COPIES or subtype in _NOTICES or subtype.startswith(_NOTICE_PREFIXES)


def _read_plain(record: Json, place: Place) -> Reading:
    """A record that holds its own message, not another's."""
    if not record.get("ts"):
        return Skipped(SkipReason.NO_TIMESTAMP)
    ts = exact_ts(record["ts"])
    if ts is None:
        return Skipped(SkipReason.BAD_TIMESTAMP, storable(str(record["ts"]))[:40])
    subtype = string(record.get("subtype"))
    if _is_tombstone(record):
        message_id = slack_message_id(place.team_id, place.channel_id, ts)
        return DeletedMessage(message_id, place.channel_id, ts)
    if is_notice_or_copy(subtype):
        reason = SkipReason.REPLY_COPY if subtype in _COPIES else SkipReason.NOTICE
        return Skipped(reason, storable(subtype), ts)
    return _read_words(record, ts, place)


def _read_words(record: Json, ts: str, place: Place) -> IncomingMessage | Skipped:
    author = author_of(record, place.directory)
    if author.is_bot and not place.index_bots:
        return Skipped(SkipReason.BOT_SWITCHED_OFF, ts=ts)
    if author.is_bot and child(record, "metadata").get("event_type") == SLACK_POST_TYPE:
        return Skipped(SkipReason.OWN_ANSWER, ts=ts)
    text = readable_text(_with_own_words(record), place.directory)
    stubs = sum(not file_title(file) for file in files_of(record))
    if not text:
        return Skipped(SkipReason.NO_TEXT, "only a file that is gone" if stubs else "", ts)
    root = root_ts(ts, exact_ts(record.get("thread_ts")) or "")
    edited_ts = exact_ts(child(record, "edited").get("ts")) or ""
    return IncomingMessage(
        message_id=slack_message_id(place.team_id, place.channel_id, ts),
        source=Source.SLACK,
        channel_id=place.channel_id,
        channel_name=place.channel_name,
        author_id=author.author_id,
        author_name=author.name,
        posted_at=instant_of(ts),
        text=text,
        thread_root_id=slack_message_id(place.team_id, place.channel_id, root),
        edited_at=instant_of(edited_ts) if edited_ts else None,
        ts=ts,
        edited_ts=edited_ts,
        thread_root_ts=root,
        author_team_id=author.team_id,
        is_bot=author.is_bot,
        file_stubs=stubs,
    )


def _with_own_words(record: Json) -> Json:
    """A file comment's text is the comment's; the row's own is a sentence around it."""
    comment = string(child(record, "comment").get("comment"))
    return {**record, "text": comment} if comment else record


def _is_tombstone(record: Json) -> bool:
    """A row left for a deleted message. A person may type the phrase; Slackbot says it as Slack."""
    if record.get("subtype") == "tombstone":
        return True
    said_by_slack = record.get("user") == "USLACKBOT" or record.get("hidden") is True
    return said_by_slack and string(record.get("text")).strip() == _DELETED_PHRASE


def decode_json(raw: bytes) -> object:
    """JSON with fractional numbers kept as their text. Raises ValueError.

    Bytes that are not UTF-8 become replacement characters: one bad byte costs no message.
    """
    try:
        return json.loads(
            raw.decode("utf-8-sig", "replace"),
            parse_float=str,
            parse_int=_whole_number,
            parse_constant=str,
        )
    except RecursionError:
        raise ValueError("the record nests too deep") from None


def _whole_number(digits: str) -> int | str:
    """A number too long for any id or time stays text: to convert it would cost or fail."""
    return int(digits) if len(digits) <= 18 else digits
