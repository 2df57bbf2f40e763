"""What may be shown of a written text. Pure.

The answer stage checks citations while it writes. The gateway checks again what it is about to
show: citations are filled from its own evidence, and the evidence must still read the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from recall.answer.v1 import answer_pb2
from recall.corpus.v1 import corpus_pb2

UNVERIFIED_TEXT = "I couldn’t verify an answer from the available messages."
ABSTAINED_TEXT = "I couldn’t find enough evidence in the available messages."
SOURCES_ONLY_TEXT = "These messages were found; nobody checked whether they answer."
SUPPRESSED_TEXT = "A message behind this answer has changed, so it is not shown. Ask again."

ANSWER_UNAVAILABLE = "answer_unavailable"
WINDOW_TRUNCATED = "window_truncated"

UNKNOWN_CITATION = "The text cited a message that was not part of the evidence."
NO_CITATION = "The text cited none of the messages."
EVIDENCE_CHANGED = "A cited message was edited, deleted or became unreadable while writing."
UNUSABLE_REPLY = "The answer stage sent a reply that can not be used."

_WRITTEN_OUTCOMES = (
    corpus_pb2.OUTCOME_ANSWERED,
    corpus_pb2.OUTCOME_ABSTAINED,
    corpus_pb2.OUTCOME_UNVERIFIED,
)


@dataclass(frozen=True)
class Checked:
    """A text that may be shown, with the messages it cites in order of first citation."""

    outcome: corpus_pb2.Outcome.ValueType
    text: str
    reason: str = ""
    citations: tuple[corpus_pb2.Message, ...] = ()


def is_usable(written: answer_pb2.WrittenText) -> bool:
    """Whether a reply of the answer stage has one of its three outcomes, with text if answered."""
    answered = written.outcome == corpus_pb2.OUTCOME_ANSWERED
    return written.outcome in _WRITTEN_OUTCOMES and (bool(written.text.strip()) or not answered)


def check(written: answer_pb2.WrittenText, evidence: Iterable[corpus_pb2.Message]) -> Checked:
    """The text to show: an answer needs a citation, and every citation must be evidence."""
    by_id = {message.message_id: message for message in evidence}
    cited = tuple(dict.fromkeys(written.cited_message_ids))
    if written.outcome == corpus_pb2.OUTCOME_UNVERIFIED:
        return _unverified(written.reason)
    if any(message_id not in by_id for message_id in cited):
        return _unverified(UNKNOWN_CITATION)
    if written.outcome == corpus_pb2.OUTCOME_ANSWERED and not cited:
        return _unverified(NO_CITATION)
    citations = tuple(by_id[message_id] for message_id in cited)
    return Checked(written.outcome, written.text or ABSTAINED_TEXT, written.reason, citations)


def abstained(reason: str) -> Checked:
    """Nothing to write from."""
    return Checked(corpus_pb2.OUTCOME_ABSTAINED, ABSTAINED_TEXT, reason)


def unwritten(reason: str) -> Checked:
    """No text could be written; the caller shows the messages instead."""
    return Checked(corpus_pb2.OUTCOME_SOURCES_ONLY, SOURCES_ONLY_TEXT, reason)


def suppressed() -> Checked:
    """The evidence moved under the text."""
    return Checked(corpus_pb2.OUTCOME_SUPPRESSED, SUPPRESSED_TEXT, EVIDENCE_CHANGED)


def unchanged_ids(
    shown: Iterable[corpus_pb2.Message], current: Sequence[corpus_pb2.Message]
) -> set[str]:
    """Ids of the messages that still exist for the reader and read the same."""
    hashes = {message.message_id: message.content_sha256 for message in current}
    return {
        message.message_id
        for message in shown
        if hashes.get(message.message_id) == message.content_sha256
    }


def _unverified(reason: str) -> Checked:
    return Checked(corpus_pb2.OUTCOME_UNVERIFIED, UNVERIFIED_TEXT, reason)
