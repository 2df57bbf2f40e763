"""Raw records of a batch to messages, deletions and reasons. Pure; runs in a thread."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from services.corpus import Source, slack_message_id
from services.ingest.authors import child
from services.ingest.directory import Directory
from services.ingest.import_parts import RawRecord
from services.ingest.json_lines import read_json_line
from services.ingest.records import (
    DeletedMessage,
    IncomingMessage,
    Place,
    Reading,
    Skipped,
    SkipReason,
    decode_json,
    read_slack_record,
)
from services.ingest.store import Batch
from services.ingest.timestamps import exact_ts
from services.ingest.versions import edit_order

_ESCAPED_NUL = b"\\u0000"


@dataclass(frozen=True)
class Reader:
    """How the records of one import are understood. ``places`` has every folder of the batch."""

    source: Source
    directory: Directory
    places: dict[str, Place]
    index_bots: bool

    def read(self, record: RawRecord) -> Reading:
        """One raw record."""
        if self.source is Source.SLACK:
            return read_slack_record(record.raw, self.places[record.folder])
        reading = read_json_line(record.raw)
        return self._with_bot_mark(reading) if isinstance(reading, IncomingMessage) else reading

    def _with_bot_mark(self, message: IncomingMessage) -> Reading:
        """A JSON line's author is a bot when people.json says so."""
        person = self.directory.people.get(message.author_id)
        if person is None or not person.is_bot:
            return message
        if not self.index_bots:
            return Skipped(SkipReason.BOT_SWITCHED_OFF)
        return replace(message, is_bot=True)


@dataclass
class ReadBatch:
    """A batch that was read, and what the report needs of it."""

    messages: list[IncomingMessage] = field(default_factory=list)
    deletions: list[DeletedMessage] = field(default_factory=list)
    emptied: dict[str, tuple[int, int]] = field(default_factory=dict)
    skipped: list[tuple[Skipped, str]] = field(default_factory=list)
    nul_records: int = 0

    def to_store(self) -> Batch:
        """What is written of it."""
        return Batch(self.messages, self.deletions, self.emptied)


def read_batch(reader: Reader, records: Iterable[RawRecord]) -> ReadBatch:
    """Every record of a batch; none of them can fail it."""
    batch = ReadBatch()
    for record in records:
        batch.nul_records += _ESCAPED_NUL in record.raw or b"\0" in record.raw
        match reader.read(record):
            case IncomingMessage() as message:
                batch.messages.append(message)
            case DeletedMessage() as deletion:
                batch.deletions.append(deletion)
            case Skipped() as skipped:
                batch.skipped.append((skipped, record.file_name))
                batch.emptied.update(_emptied(reader, record, skipped))
    return batch


def _emptied(
    reader: Reader, record: RawRecord, skipped: Skipped
) -> Iterator[tuple[str, tuple[int, int]]]:
    """The id and order of edit of a Slack message that has no text any more."""
    if skipped.reason is not SkipReason.NO_TEXT or not skipped.ts:
        return
    place = reader.places[record.folder]
    decoded = decode_json(record.raw)
    edited = child(decoded, "edited").get("ts") if isinstance(decoded, dict) else None
    message_id = slack_message_id(place.team_id, place.channel_id, skipped.ts)
    yield message_id, edit_order(exact_ts(edited) or "", None)
