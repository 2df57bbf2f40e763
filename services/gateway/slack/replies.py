"""What a person is shown, before it is laid out: one shape for every command. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from recall.corpus.v1 import corpus_pb2
from recall.gateway.v1 import gateway_pb2
from recall.ingest.v1 import ingest_pb2, slack_pb2
from recall.retrieve.v1 import retrieve_pb2
from services.corpus import instant
from services.gateway.checking import SUPPRESSED_TEXT, WINDOW_TRUNCATED
from services.gateway.ranking import qualified

MOST_SHOWN_SOURCES = 12
DENSE_INCOMPLETE = "dense_incomplete"
FOUND = "found"
TOLD = "told"
SUPPRESSED = "suppressed"

_INCOMPLETE_STATES = ("waiting", "reading", "failed")


@dataclass(frozen=True)
class Reply:
    """``outcome`` is an Outcome's name in lower case, "found" for a search, "told" for a sentence.

    ``text`` cites ``sources`` by message id. ``question`` is what "Ask again" asks; empty when
    asking again makes no sense. ``can_share``: whether it is an answer that others may be shown.
    """

    outcome: str
    text: str
    reason: str = ""
    sources: tuple[corpus_pb2.Message, ...] = ()
    notes: tuple[str, ...] = ()
    question: str = ""
    can_share: bool = False

    def evidence(self) -> list[slack_pb2.EvidenceRef]:
        """The messages it shows, as they stood."""
        return [
            slack_pb2.EvidenceRef(message_id=m.message_id, content_sha256=m.content_sha256)
            for m in self.sources
        ]


def told(text: str) -> Reply:
    """A sentence of Recall's own; nothing of anybody's messages."""
    return Reply(TOLD, text)


def from_answer(answer: gateway_pb2.Answer, question: str) -> Reply:
    """An ask's end."""
    unverified = [hit.message for hit in answer.unverified_sources]
    return Reply(
        outcome=_outcome(answer.outcome),
        text=answer.text,
        reason=answer.reason,
        sources=tuple([*answer.citations, *unverified][:MOST_SHOWN_SOURCES]),
        notes=_degraded_notes(answer.degraded),
        question=question,
        can_share=answer.outcome == corpus_pb2.OUTCOME_ANSWERED,
    )


def from_window(window: gateway_pb2.WindowText, question: str) -> Reply:
    """A catch-up's, summary's or list of decisions' end."""
    sources = [*window.citations, *window.unverified_sources][-MOST_SHOWN_SOURCES:]
    if window.citations:
        sources = list(window.citations)
    read = f"{window.scope}: {window.messages_read:,} messages read."
    return Reply(
        outcome=_outcome(window.outcome),
        text=window.text,
        reason=window.reason,
        sources=tuple(sources),
        notes=((read,) if window.messages_read else ()) + _degraded_notes(window.degraded),
        question=question,
        can_share=window.outcome == corpus_pb2.OUTCOME_ANSWERED,
    )


def from_search(found: retrieve_pb2.SearchResponse, question: str) -> Reply:
    """A search's end: only what the trust gate let through."""
    messages = tuple(hit.message for hit in qualified(found.hits))[:MOST_SHOWN_SOURCES]
    if found.abstained or not messages:
        return Reply("abstained", "I found no message for this.", found.reason, question=question)
    counted = "1 message" if len(messages) == 1 else f"{len(messages)} messages"
    return Reply(
        outcome=FOUND,
        text=f"I found {counted}, best first.",
        sources=messages,
        notes=_degraded_notes(found.degraded),
        question=question,
    )


def suppressed(reply: Reply) -> Reply:
    """The reply withheld, because what it shows no longer stands or may no longer be read."""
    return Reply(SUPPRESSED, SUPPRESSED_TEXT, question=reply.question)


def with_notes(reply: Reply, notes: Iterable[str]) -> Reply:
    """The reply with more lines below it."""
    return replace(reply, notes=(*reply.notes, *notes))


def coverage_notes(coverage: ingest_pb2.GetCoverageResponse) -> tuple[str, ...]:
    """One line on the channels whose history is not read to its beginning; none otherwise."""
    waiting = [c for c in coverage.channels if c.history_state in _INCOMPLETE_STATES]
    if not waiting:
        return ()
    named = [_how_far(channel) for channel in waiting[:3]]
    more = len(waiting) - len(named)
    listed = ", ".join([*named, f"{more} more"] if more else named)
    return (f"History is still being read, so older messages may be missing: {listed}.",)


def _how_far(channel: ingest_pb2.ChannelCoverage) -> str:
    if not channel.HasField("read_down_to"):
        return f"#{channel.channel_name} (not begun)"
    return f"#{channel.channel_name} (back to {instant(channel.read_down_to):%Y-%m-%d})"


def _degraded_notes(degraded: Sequence[str]) -> tuple[str, ...]:
    notes = []
    if WINDOW_TRUNCATED in degraded:
        notes.append("Only the newest messages of this window were read.")
    if DENSE_INCOMPLETE in degraded:
        notes.append("New messages are still being indexed; some are found by their words only.")
    return tuple(notes)


def _outcome(outcome: corpus_pb2.Outcome.ValueType) -> str:
    return corpus_pb2.Outcome.Name(outcome).removeprefix("OUTCOME_").lower()
