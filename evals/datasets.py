"""Labelled questions and the messages they are about."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

STATES_THE_ANSWER = 2
DEV, TEST = "dev", "test"


class DatasetError(Exception):
    """A data file can not be used; one line that names it."""


@dataclass(frozen=True)
class LabelledMessage:
    """A message as the data file states it."""

    message_id: str
    channel: str
    posted_at: datetime
    text: str


@dataclass(frozen=True)
class Question:
    """A question and its labels.

    ``grades`` holds the evidence: 2 states the answer, 1 supports it. ``stale`` states an outdated
    or false value. ``readable`` are the channels that the reader may read, or that the question is
    narrowed to. ``reader_channels`` is sent as it is; None leaves the default, every public one.
    """

    question_id: str
    text: str
    kind: str
    answerable: bool
    grades: Mapping[str, int]
    readable: frozenset[str]
    stale: frozenset[str] = frozenset()
    split: str = ""
    reader_channels: tuple[str, ...] | None = None
    in_channel: str = ""

    @property
    def stating(self) -> frozenset[str]:
        """The evidence that states the answer."""
        return frozenset(m for m, grade in self.grades.items() if grade == STATES_THE_ANSWER)


@dataclass(frozen=True)
class Dataset:
    """One workspace of messages with its questions; ``path`` is what gets imported."""

    workspace: str
    path: Path
    messages: Mapping[str, LabelledMessage]
    questions: tuple[Question, ...]

    @property
    def with_evidence(self) -> tuple[Question, ...]:
        """Questions that search can be measured on."""
        return tuple(question for question in self.questions if question.grades)

    def of_split(self, split: str) -> Dataset:
        """The same messages with one split's questions."""
        return replace(self, questions=tuple(q for q in self.questions if q.split == split))


def read_beacon(folder: Path, questions: Path) -> Dataset:
    """The synthetic workspace. Raises DatasetError."""
    public = _public(folder)
    return Dataset(
        "beacon",
        folder,
        _messages(folder / "messages.jsonl"),
        tuple(_beacon_question(line, public) for line in _lines(questions)),
    )


def read_conversations(folder: Path) -> Dataset:
    """Conversations, each a channel of its own that its questions are narrowed to.

    Raises DatasetError.
    """
    return Dataset(
        "locomo-dev",
        folder / "messages.jsonl",
        _messages(folder / "messages.jsonl"),
        tuple(map(_conversation_question, _lines(folder / "queries.jsonl"))),
    )


def read_question_sets(folder: Path, beacon: Dataset) -> tuple[Question, ...]:
    """Questions to Beacon's public channels, a set a file; ``kind`` is the set. Raises
    DatasetError."""
    public = _public(beacon.path)
    return tuple(
        Question(
            question_id=line["id"],
            text=line["question"],
            kind=path.stem,
            answerable=line["answerable"],
            grades=dict.fromkeys(line["evidence"], STATES_THE_ANSWER),
            readable=public,
        )
        for path in sorted(folder.glob("*.jsonl"))
        for line in _lines(path)
    )


def message_id_of(channel: str, local_id: str) -> str:
    """The id under which a JSON line is stored."""
    return f"synthetic:{channel}:{local_id}"


def _public(folder: Path) -> frozenset[str]:
    channels = json.loads(_text(folder / "channels.json"))
    return frozenset(channel["name"] for channel in channels if not channel["private"])


def _beacon_question(line: Mapping[str, Any], public: frozenset[str]) -> Question:
    named = line.get("reader_channels")
    return Question(
        question_id=line["id"],
        text=line["question"],
        kind=line["type"],
        answerable=line["answerable"],
        grades={each["message_id"]: each["grade"] for each in line["evidence"]},
        readable=public if named is None else frozenset(named),
        stale=frozenset(line["stale"]),
        split=line["split"],
        reader_channels=None if named is None else tuple(named),
    )


def _conversation_question(line: Mapping[str, Any]) -> Question:
    channel = line["channel"]
    evidence = (message_id_of(channel, local_id) for local_id in line["evidence"])
    return Question(
        question_id=line["id"],
        text=line["question"],
        kind=line["type"],
        answerable=line["answerable"],
        grades=dict.fromkeys(evidence, STATES_THE_ANSWER) if line["answerable"] else {},
        readable=frozenset((channel,)),
        in_channel=channel,
    )


def _messages(path: Path) -> dict[str, LabelledMessage]:
    found = (
        LabelledMessage(
            message_id_of(line["channel"], line["id"]),
            line["channel"],
            datetime.fromisoformat(line["posted_at"]),
            line["text"],
        )
        for line in _lines(path)
    )
    return {message.message_id: message for message in found}


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(_text(path).splitlines(), 1):
        try:
            yield json.loads(line)
        except ValueError as error:
            raise DatasetError(f"{path}:{number} is not JSON ({error}).") from None


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except OSError as error:
        raise DatasetError(f"{path} can not be read ({error.strerror}).") from None
