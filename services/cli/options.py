"""What the command line and the lines of a questions file mean in the protos' terms."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from recall.corpus.v1 import corpus_pb2
from recall.gateway.v1 import gateway_pb2
from services.cli.connection import UsageError
from services.cli.documents import DEFAULT_WORKSPACE
from services.corpus import Filter, filter_to_proto, timestamp

_NUMBERS_END = 2**31


@dataclass(frozen=True)
class Question:
    """One question of a command line or of a questions file."""

    question_id: str
    text: str
    reader: gateway_pb2.Reader
    narrowing: corpus_pb2.Filter


def reader_of(options: argparse.Namespace) -> gateway_pb2.Reader:
    """Who reads, from ``--workspace``, ``--reader-channels`` and ``--collection``."""
    return _reader(_workspace(options), _channels(options))


def filter_of(options: argparse.Namespace) -> corpus_pb2.Filter:
    """The filter, from ``--channel --after --before --author``."""
    return filter_to_proto(
        Filter(
            posted_after=parse_instant("--after", options.after),
            posted_before=parse_instant("--before", options.before),
            in_channel=options.channel or "",
            author=options.author or "",
        )
    )


def read_questions(path: Path, options: argparse.Namespace) -> Iterator[Question]:
    """The questions of a JSON-lines file; a line's own fields win over the command line's."""
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"--questions {path}: can not be read ({error}).") from None
    for number, line in enumerate(lines, 1):
        if line.strip():
            yield _question(f"{path}:{number}", line, options)


def parse_instant(name: str, value: str | None) -> datetime | None:
    """A date (its midnight) or an ISO instant, in UTC where no offset is given."""
    if not value:
        return None
    try:
        parsed = datetime.fromisoformat(value)
        return (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise UsageError(f"{name} {value!r}: write a date such as 2026-08-03.") from None


def trust_of(options: argparse.Namespace) -> dict[str, Any]:
    """The fields of a request that say how far to trust, and for which instants."""
    fields: dict[str, Any] = {}
    if options.trust:
        fields["trust_mode"] = corpus_pb2.TrustMode.Value(f"TRUST_MODE_{options.trust.upper()}")
    for option, field in (("as_of", "valid_at"), ("known_as_of", "known_as_of")):
        asked = parse_instant(f"--{option.replace('_', '-')}", getattr(options, option))
        if asked is not None:
            fields[field] = timestamp(asked)
    return fields


def check_text(where: str, value: object) -> None:
    """Raise UsageError when a text, or one of a list of texts, holds half a character."""
    for text in value if isinstance(value, list) else [value]:
        if isinstance(text, str) and text.encode("utf-8", "replace").decode() != text:
            raise UsageError(f"{where} is not valid UTF-8 text.")


def small_number(value: str) -> int:
    """A whole number that a request can carry; argparse names the option when it is none."""
    number = int(value)
    if abs(number) >= _NUMBERS_END:
        raise argparse.ArgumentTypeError(f"{value} is too large")
    return number


def _question(where: str, line: str, options: argparse.Namespace) -> Question:
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{where}: not JSON ({error}).") from None
    if not isinstance(fields, dict) or not isinstance(fields.get("question"), str):
        raise UsageError(f"{where}: needs a string field 'question'.")
    for name, value in fields.items():
        check_text(f"{where}: {name!r}", value)
    own = argparse.Namespace(**(vars(options) | _overrides(where, fields)))
    channels = fields.get("reader_channels", _channels(options))
    return Question(
        question_id=str(fields.get("id", "")),
        text=fields["question"],
        reader=_reader(_workspace(own), channels),
        narrowing=filter_of(own),
    )


def _overrides(where: str, fields: dict[str, Any]) -> dict[str, str]:
    channels = fields.get("reader_channels")
    if channels is not None and not _is_names(channels):
        raise UsageError(f"{where}: 'reader_channels' must be a list of channel ids.")
    found = {}
    for name in ("channel", "after", "before", "author", "workspace"):
        value = fields.get(name)
        if value is not None and not isinstance(value, str):
            raise UsageError(f"{where}: {name!r} must be a string.")
        if value:
            found[name] = value
    return found


def _reader(workspace: str | None, channels: Sequence[str] | None) -> gateway_pb2.Reader:
    return gateway_pb2.Reader(
        workspace_id=workspace or "",
        channel_ids=channels or (),
        no_channels=channels is not None and not channels,
    )


def _workspace(options: argparse.Namespace) -> str | None:
    """The named one; that of documents for a collection without one."""
    named: str | None = options.workspace
    collection = getattr(options, "collection", None)
    return named or (DEFAULT_WORKSPACE if collection else None)


def _channels(options: argparse.Namespace) -> list[str] | None:
    """What the asker may read; a collection is all of it."""
    collection = getattr(options, "collection", None)
    return [collection] if collection else _split(options.reader_channels)


def _split(channels: str | None) -> list[str] | None:
    """None stays None: every public channel. An empty list reads nothing."""
    if channels is None:
        return None
    return [name.strip() for name in channels.split(",") if name.strip()]


def _is_names(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in value)
