"""What a reply holds that its reader may not read: ids, channels or text, wherever they stand."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from evals.datasets import LabelledMessage
from evals.word_runs import RUN_WORDS, SHORTEST_RUN_WORDS, Run, own_runs_of, runs_of

_MESSAGE_ID = re.compile(r"synthetic:([^:\s\]]+):")
_CHANNEL_FIELDS = ("channel_id", "channel_name")
_ECHOES = ("question", "lexical_query", "in_channel", "author")


class LeakDetector:
    """Knows every message of a workspace; tells what of it a reply should not hold."""

    def __init__(self, messages: Mapping[str, LabelledMessage]) -> None:
        self._messages = messages
        self._forbidden_runs = cache(self._runs_outside)

    def leaks_of(self, reply: Message, readable: frozenset[str]) -> list[str]:
        """One line a leak: where in the reply, and what.

        Fields that repeat the question as the reader typed it are not searched for text.
        """
        return [
            f"{path}: {what}"
            for path, value in strings_of(reply)
            for what in self._leaks_in(path, value, readable)
        ]

    def _leaks_in(self, path: str, value: str, readable: frozenset[str]) -> Iterator[str]:
        for channel in sorted(set(_MESSAGE_ID.findall(value)) - readable):
            yield f"id of a message in {channel}"
        field = path.rpartition(".")[2]
        if field in _CHANNEL_FIELDS and value and value not in readable:
            yield f"channel {value}"
        if field not in _ECHOES and self._holds_text(value, readable):
            yield "text of a message outside the reader's channels"

    def _holds_text(self, value: str, readable: frozenset[str]) -> bool:
        forbidden = self._forbidden_runs(readable)
        lengths = range(SHORTEST_RUN_WORDS, RUN_WORDS + 1)
        return any(not forbidden.isdisjoint(runs_of(value, length)) for length in lengths)

    def _runs_outside(self, readable: frozenset[str]) -> frozenset[Run]:
        """Runs of unreadable messages that no readable message contains."""
        inside = [m.text for m in self._messages.values() if m.channel in readable]
        outside = [m.text for m in self._messages.values() if m.channel not in readable]
        candidates = frozenset().union(*map(own_runs_of, outside))
        lengths = range(SHORTEST_RUN_WORDS, RUN_WORDS + 1)
        public = (runs_of(text, length) for text in inside for length in lengths)
        return candidates.difference(*public)


def strings_of(reply: Message, path: str = "") -> Iterator[tuple[str, str]]:
    """Every string of a proto message with its path, map keys and nested messages included."""
    for field, value in reply.ListFields():
        here = f"{path}.{field.name}" if path else field.name
        for item in _items(field, value):
            if isinstance(item, Message):
                yield from strings_of(item, here)
            elif isinstance(item, str):
                yield here, item


def _items(field: FieldDescriptor, value: object) -> Iterable[object]:
    if not field.is_repeated:
        return [value]
    if isinstance(value, Mapping):
        return [part for pair in value.items() for part in pair]
    assert isinstance(value, Iterable)
    return value
