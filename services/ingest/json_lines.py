"""Understanding of one JSON line: a message, or a named reason to leave it out."""

from __future__ import annotations

from services.corpus import Source, synthetic_message_id
from services.ingest.blocks import Json, string
from services.ingest.identifiers import storable_id
from services.ingest.markup import one_line, storable, without_tokens
from services.ingest.records import IncomingMessage, Skipped, SkipReason, decode_json
from services.ingest.timestamps import iso_instant

_LINE_KEYS = ("channel", "id", "root", "author", "posted_at", "text")


def read_json_line(raw: bytes) -> IncomingMessage | Skipped:
    """One line ``{"channel","id","root","author","posted_at","text"[,"edited_at"]}``.

    The channel's id is its name and the author's id the author's name. A missing or wrong key is
    ``MISSING_FIELD`` whose detail names the key and the remedy. A null ``root`` is the message
    itself.
    """
    try:
        line = decode_json(raw)
    except ValueError as error:
        return Skipped(SkipReason.NOT_JSON, str(error))
    if not isinstance(line, dict):
        return Skipped(SkipReason.NOT_A_MESSAGE, "the line is not a JSON object")
    fault = _line_fault(line)
    if fault:
        return Skipped(SkipReason.MISSING_FIELD, fault)
    return _message_of_line(line)


def _line_fault(line: Json) -> str:
    """What a JSON line lacks, for a person; empty when it is complete."""
    missing = [key for key in _LINE_KEYS if key not in line]
    if missing:
        return f"key {', '.join(missing)} is missing: every line needs {', '.join(_LINE_KEYS)}"
    empty = [key for key in ("channel", "id", "author") if not string(line[key]).strip()]
    if empty:
        return f"key {', '.join(empty)} is empty: give it a text"
    if not isinstance(line["text"], str):
        return "key text is not a text"
    wrong = [key for key in ("posted_at", "edited_at") if not _is_instant_or_absent(line, key)]
    return (
        f"key {', '.join(wrong)} is no instant: write it as 2026-03-02T09:14:00Z" if wrong else ""
    )


def _is_instant_or_absent(line: Json, key: str) -> bool:
    if key == "edited_at" and not line.get(key):
        return True
    return iso_instant(string(line[key])) is not None


def _message_of_line(line: Json) -> IncomingMessage | Skipped:
    channel, local_id, author = (_clean(line[key]) for key in ("channel", "id", "author"))
    channel_id, message_id = storable_id(channel), storable_id(local_id)
    text = without_tokens(storable(string(line["text"])))
    posted_at = iso_instant(string(line["posted_at"]))
    if not text.strip() or posted_at is None:
        return Skipped(SkipReason.NO_TEXT)
    return IncomingMessage(
        message_id=synthetic_message_id(channel_id, message_id),
        source=Source.SYNTHETIC,
        channel_id=channel_id,
        channel_name=one_line(channel),
        author_id=storable_id(author),
        author_name=one_line(author),
        posted_at=posted_at,
        text=text,
        thread_root_id=synthetic_message_id(
            channel_id, storable_id(_clean(line["root"]) or local_id)
        ),
        edited_at=iso_instant(string(line.get("edited_at"))),
    )


def _clean(value: object) -> str:
    return storable(string(value)).strip()
