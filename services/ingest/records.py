"""Understanding of one raw record: a message, a deletion, or a named reason to leave it out."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from services.corpus import Source, content_sha256
from services.ingest.directory import Directory


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
    MISSING_FIELD = "missing_field"


@dataclass(frozen=True)
class Place:
    """Where a record stood. ``team_id`` is the workspace's own, never an author's.

    For JSON lines only ``directory`` and ``index_bots`` have no meaning; the channel is the
    line's own.
    """

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
    tells nothing about its author. ``author_team_id`` is a guest's home team, where told.
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
    raise NotImplementedError


def read_slack_message(record: object, place: Place) -> Reading:
    """One decoded Slack message (export, history page or event). Never raises on any value.

    Numbers must have been decoded without a float (``decode_json``), so that ts stays exact.
    """
    raise NotImplementedError


def read_json_line(raw: bytes) -> IncomingMessage | Skipped:
    """One line ``{"channel","id","root","author","posted_at","text"[,"edited_at"]}``.

    The channel's id is its name and the author's id the author's name. A missing or wrong key is
    ``MISSING_FIELD`` whose detail names the key and the remedy.
    """
    raise NotImplementedError


def decode_json(raw: bytes) -> object:
    """JSON with fractional numbers kept as their text. Raises ValueError."""
    raise NotImplementedError
