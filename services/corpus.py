"""The nouns that all stages share, as frozen dataclasses, and their way to and from proto."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from urllib.parse import quote, unquote

from google.protobuf.timestamp_pb2 import Timestamp

from recall.corpus.v1 import corpus_pb2

# Characters that separate the parts of an id, or that end a citation, stand percent-encoded in a
# part. Everything else stays as it is, so that ids remain readable.
_RESERVED = ":[], #%"
_READABLE = "".join(chr(code) for code in range(0x21, 0x7F) if chr(code) not in _RESERVED)

# What a link in a message shows stands in the message's text in quoted lines; the first of them
# begins with one of these and a colon. They are not the author's words.
LINKED_PAGE = "Linked page"
LINKED_MESSAGE = "Linked message"


# event_type in the metadata of a post of Recall's own in Slack: finds a post again after a crash,
# keeps an answer from becoming evidence for the next one.
SLACK_POST_TYPE = "recall_delivery"


class Source(StrEnum):
    """Kind of place a message comes from; the first part of its id."""

    SLACK = "slack"
    SYNTHETIC = "synthetic"
    DOCUMENT = "document"


@dataclass(frozen=True)
class Message:
    """One message as its reader sees it: current names, readable text."""

    message_id: str
    workspace_id: str
    channel_id: str
    channel_name: str
    author_id: str
    author_name: str
    posted_at: datetime
    text: str
    thread_root_id: str
    edited_at: datetime | None = None
    permalink: str = ""
    content_sha256: str = ""
    is_bot: bool = False


@dataclass(frozen=True)
class QueryContext:
    """What the asker may read. An empty ``channel_ids`` reads nothing."""

    source: Source
    workspace_id: str
    channel_ids: tuple[str, ...]


@dataclass(frozen=True)
class Filter:
    """What narrows a question inside its context. Instants are UTC; ``posted_before`` is open."""

    posted_after: datetime | None = None
    posted_before: datetime | None = None
    in_channel: str = ""
    author: str = ""


def encode_part(part: str, *, keep_colon: bool = False) -> str:
    """Percent-encode the reserved characters of one part of an id.

    ``keep_colon`` is for the last part of a JSON-lines id, whose own ids may hold colons.
    Non-ASCII letters and control characters are encoded too, so an id is always plain ASCII.
    """
    return quote(part, safe=_READABLE + (":" if keep_colon else ""))


def slack_message_id(team_id: str, channel_id: str, ts: str) -> str:
    """``slack:<team>:<channel>:<ts>``; ``ts`` is text with its six decimals."""
    return f"slack:{encode_part(team_id)}:{encode_part(channel_id)}:{encode_part(ts)}"


def synthetic_message_id(channel_id: str, local_id: str) -> str:
    """``synthetic:<channel>:<local id>``; a colon inside the local id is kept."""
    return f"synthetic:{encode_part(channel_id)}:{encode_part(local_id, keep_colon=True)}"


def document_message_id(collection: str, path: str, number: int) -> str:
    """``document:<collection>:<path>#<n>``: the n-th piece of a document, from 1."""
    return f"document:{encode_part(collection)}:{encode_part(path)}#{number}"


def source_of(message_id: str) -> Source:
    """Source named by an id's first part. Raises ValueError for an unknown one."""
    return Source(message_id.split(":", 1)[0])


def id_parts(message_id: str) -> list[str]:
    """The decoded parts of an id; the last part of a synthetic id keeps its colons."""
    limit = 2 if message_id.startswith("synthetic:") else -1
    return [unquote(part) for part in message_id.split(":", limit)]


def content_sha256(text: str, author_id: str, edited_at: datetime | None) -> str:
    """SHA-256 (hex) over what an edit can change; equal exactly when nothing was edited."""
    edited = edited_at.astimezone(UTC).isoformat() if edited_at else ""
    joined = "\x1f".join((text, author_id, edited))
    return hashlib.sha256(joined.encode("utf-8", "surrogatepass")).hexdigest()


_SOURCE_TO_PROTO = {
    Source.SLACK: corpus_pb2.SOURCE_SLACK,
    Source.SYNTHETIC: corpus_pb2.SOURCE_SYNTHETIC,
    Source.DOCUMENT: corpus_pb2.SOURCE_DOCUMENT,
}
_SOURCE_FROM_PROTO = {number: source for source, number in _SOURCE_TO_PROTO.items()}


def source_to_proto(source: Source) -> corpus_pb2.Source.ValueType:
    """The proto's number for a source."""
    return _SOURCE_TO_PROTO[source]


def source_from_proto(number: corpus_pb2.Source.ValueType) -> Source | None:
    """The source of a proto's number; None when it is unspecified or unknown."""
    return _SOURCE_FROM_PROTO.get(number)


def timestamp(instant: datetime | None) -> Timestamp | None:
    """A proto timestamp for an aware datetime; None stays None (the field stays unset)."""
    if instant is None:
        return None
    stamp = Timestamp()
    stamp.FromDatetime(instant.astimezone(UTC))
    return stamp


def instant(stamp: Timestamp) -> datetime:
    """The aware UTC datetime of a proto timestamp."""
    return stamp.ToDatetime(tzinfo=UTC)


def message_to_proto(message: Message) -> corpus_pb2.Message:
    """A message for the wire."""
    return corpus_pb2.Message(
        message_id=message.message_id,
        workspace_id=message.workspace_id,
        channel_id=message.channel_id,
        channel_name=message.channel_name,
        author_id=message.author_id,
        author_name=message.author_name,
        posted_at=timestamp(message.posted_at),
        edited_at=timestamp(message.edited_at),
        text=message.text,
        thread_root_id=message.thread_root_id,
        permalink=message.permalink,
        content_sha256=message.content_sha256,
        is_bot=message.is_bot,
    )


def message_from_proto(wire: corpus_pb2.Message) -> Message:
    """A message from the wire."""
    return Message(
        message_id=wire.message_id,
        workspace_id=wire.workspace_id,
        channel_id=wire.channel_id,
        channel_name=wire.channel_name,
        author_id=wire.author_id,
        author_name=wire.author_name,
        posted_at=instant(wire.posted_at),
        edited_at=instant(wire.edited_at) if wire.HasField("edited_at") else None,
        text=wire.text,
        thread_root_id=wire.thread_root_id,
        permalink=wire.permalink,
        content_sha256=wire.content_sha256,
        is_bot=wire.is_bot,
    )


def filter_to_proto(narrowing: Filter) -> corpus_pb2.Filter:
    """A filter for the wire."""
    return corpus_pb2.Filter(
        posted_after=timestamp(narrowing.posted_after),
        posted_before=timestamp(narrowing.posted_before),
        in_channel=narrowing.in_channel,
        author=narrowing.author,
    )


def filter_from_proto(wire: corpus_pb2.Filter) -> Filter:
    """A filter from the wire."""
    return Filter(
        posted_after=instant(wire.posted_after) if wire.HasField("posted_after") else None,
        posted_before=instant(wire.posted_before) if wire.HasField("posted_before") else None,
        in_channel=wire.in_channel,
        author=wire.author,
    )
