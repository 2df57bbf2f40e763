"""Texts about a window of messages: catch-up, summary, decisions.

Messages are read in time order and are not reranked.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from recall.answer.v1 import answer_pb2
from recall.corpus.v1 import corpus_pb2
from recall.gateway.v1 import gateway_pb2
from recall.retrieve.v1 import retrieve_pb2
from services.corpus import instant
from services.gateway.checking import (
    ANSWER_UNAVAILABLE,
    WINDOW_TRUNCATED,
    Checked,
    abstained,
    check,
    unwritten,
)
from services.gateway.clients import Stages, reach
from services.gateway.deadline import Deadline, Stopwatch
from services.gateway.reread import still_unchanged, suppressed_if_changed
from services.gateway.window_parts import Messages, Part, Write, Written, write_parts

WINDOW_SECONDS = 180.0
READ_SECONDS = 15.0
# What the answer stage is sent at once. 2,000 messages of a busy team are about a week.
PART_MESSAGES = 2_000
PART_BYTES = 16 * 1024 * 1024
# The newest parts are kept.
MOST_PARTS = 25
PAGE_SIZE = 500
CATCH_UP_DAYS = 7


@dataclass(frozen=True)
class Window:
    """Which messages to read. ``context`` is built by the edge, never by the asker.

    With ``thread_of``, a message's id, the thread around it and nothing else.
    """

    context: corpus_pb2.QueryContext
    narrowing: corpus_pb2.Filter
    thread_of: str = ""


async def catch_up(window: Window, stages: Stages, deadline: Deadline) -> gateway_pb2.WindowText:
    """What happened in the window; without dates, in the last days that have messages."""

    async def write(messages: list[corpus_pb2.Message], scope: str, seconds: float) -> Written:
        request = answer_pb2.WriteCatchUpRequest(messages=messages, scope=scope)
        reply = await reach("answer", stages.writer.WriteCatchUp, request, seconds)
        return Written(reply.written)

    recent = await last_days(window, stages, deadline)
    text, _ = await write_about(recent, write, stages, deadline)
    return text


async def summarise(window: Window, stages: Stages, deadline: Deadline) -> gateway_pb2.WindowText:
    """A summary of the window."""

    async def write(messages: list[corpus_pb2.Message], scope: str, seconds: float) -> Written:
        request = answer_pb2.WriteSummaryRequest(messages=messages, scope=scope)
        reply = await reach("answer", stages.writer.WriteSummary, request, seconds)
        return Written(reply.written)

    text, _ = await write_about(window, write, stages, deadline)
    return text


async def list_decisions(
    window: Window, stages: Stages, deadline: Deadline
) -> tuple[gateway_pb2.WindowText, tuple[answer_pb2.Decision, ...]]:
    """The decisions of the window, as text and as data."""

    async def write(messages: list[corpus_pb2.Message], scope: str, seconds: float) -> Written:
        request = answer_pb2.WriteDecisionsRequest(messages=messages, scope=scope)
        reply = await reach("answer", stages.writer.WriteDecisions, request, seconds)
        return Written(reply.written, tuple(reply.decisions))

    return await write_about(window, write, stages, deadline)


async def write_about(
    window: Window, write: Write, stages: Stages, deadline: Deadline
) -> tuple[gateway_pb2.WindowText, tuple[answer_pb2.Decision, ...]]:
    """Read, write, check. Raises CallError when retrieve fails; a failed writer is SOURCES_ONLY."""
    stopwatch = Stopwatch(deadline.clock)
    scope = "this thread" if window.thread_of else scope_of(window.narrowing)
    reading = Reading(window, stages, deadline)
    whole = await write_parts(reading.parts(), write, scope, deadline)
    stopwatch.lap("answer")
    shown = gateway_pb2.WindowText(
        messages_read=whole.messages_read,
        scope=scope,
        degraded=[WINDOW_TRUNCATED] if reading.is_truncated else [],
    )
    decisions: tuple[answer_pb2.Decision, ...] = ()
    if whole.written is None:
        checked = abstained(whole.reason or f"There are no messages in {scope}.")
    elif isinstance(whole.written, str):
        checked = unwritten(whole.written)
        kept = await still_unchanged(whole.newest, window.context, stages, deadline)
        shown.degraded.append(ANSWER_UNAVAILABLE)
        shown.unverified_sources.extend(m for m in whole.newest if m.message_id in kept)
    else:
        checked = check(whole.written.text, whole.cited)
        checked = await suppressed_if_changed(checked, window.context, stages, deadline)
        decisions = decisions_of(checked, whole.written.decisions)
    stopwatch.lap("check")
    shown.MergeFrom(_text(checked, stopwatch))
    return shown, decisions


async def last_days(window: Window, stages: Stages, deadline: Deadline) -> Window:
    """The window itself, or, when it has no dates, the days before the newest readable message.

    An archive is old: counted from now its last days would be empty.
    """
    narrowing = window.narrowing
    if narrowing.HasField("posted_after") or narrowing.HasField("posted_before"):
        return window
    newest = await _page(window, "", 1, stages, deadline)
    if not newest.HasField("newest_at"):
        return window
    recent = corpus_pb2.Filter()
    recent.CopyFrom(narrowing)
    began = instant(newest.newest_at) - timedelta(days=CATCH_UP_DAYS)
    recent.posted_after.FromDatetime(began)
    return Window(window.context, recent)


@dataclass(frozen=True)
class Limits:
    """Messages of one part, and parts of a window."""

    messages: int = PART_MESSAGES
    parts: int = MOST_PARTS


class Reading:
    """Reads a window part by part, the newest first.

    ``is_truncated`` once it is read: older messages were left out.
    """

    def __init__(
        self, window: Window, stages: Stages, deadline: Deadline, limits: Limits | None = None
    ) -> None:
        self._window = window
        self._stages = stages
        self._deadline = deadline
        self._limits = limits or Limits()
        self.is_truncated = False

    async def parts(self) -> AsyncGenerator[Part]:
        """The parts; one without messages when there are none. Raises CallError."""
        if self._window.thread_of:
            yield Part(await _read_thread(self._window, self._stages, self._deadline))
            return
        token = ""
        for _ in range(self._limits.parts):
            part, token = await self._part(token)
            yield part
            if not token:
                return
        self.is_truncated = True

    async def _part(self, token: str) -> tuple[Part, str]:
        newest_first: list[corpus_pb2.Message] = []
        while True:
            size = min(PAGE_SIZE, self._limits.messages)
            page = await _page(self._window, token, size, self._stages, self._deadline)
            newest_first += page.messages
            token = page.next_page_token
            full = len(newest_first) >= self._limits.messages or _bytes(newest_first) >= PART_BYTES
            if full or not token:
                return Part(tuple(reversed(newest_first)), page.reason), token


def _bytes(messages: Iterable[corpus_pb2.Message]) -> int:
    return sum(message.ByteSize() for message in messages)


async def _read_thread(window: Window, stages: Stages, deadline: Deadline) -> Messages:
    request = retrieve_pb2.ReadThreadRequest(context=window.context, message_id=window.thread_of)
    seconds = deadline.share(READ_SECONDS)
    thread = await reach("retrieve", stages.retriever.ReadThread, request, seconds)
    return tuple(thread.messages)


def scope_of(narrowing: corpus_pb2.Filter) -> str:
    """Words for a window, such as ``#ops since 2026-08-03``."""
    channel = narrowing.in_channel.removeprefix("#")
    words = [f"#{channel}" if channel else "all readable channels"]
    if narrowing.author:
        words.append(f"by {narrowing.author}")
    if narrowing.HasField("posted_after"):
        words.append(f"since {_day(instant(narrowing.posted_after))}")
    if narrowing.HasField("posted_before"):
        words.append(f"before {_day(instant(narrowing.posted_before))}")
    return " ".join(words)


def decisions_of(
    checked: Checked, decisions: Iterable[answer_pb2.Decision]
) -> tuple[answer_pb2.Decision, ...]:
    """The decisions whose messages are among the citations that may be shown."""
    cited = {message.message_id for message in checked.citations}
    return tuple(decision for decision in decisions if decision.message_id in cited)


async def _page(
    window: Window, token: str, size: int, stages: Stages, deadline: Deadline
) -> retrieve_pb2.ReadTimelineResponse:
    request = retrieve_pb2.ReadTimelineRequest(
        context=window.context,
        filter=window.narrowing,
        page_size=size,
        page_token=token,
        newest_first=True,
    )
    seconds = deadline.share(READ_SECONDS)
    return await reach("retrieve", stages.retriever.ReadTimeline, request, seconds)


def _text(checked: Checked, stopwatch: Stopwatch) -> gateway_pb2.WindowText:
    return gateway_pb2.WindowText(
        outcome=checked.outcome,
        text=checked.text,
        reason=checked.reason,
        citations=checked.citations,
        timings_ms=stopwatch.milliseconds(),
    )


def _day(moment: datetime) -> str:
    return moment.astimezone(UTC).date().isoformat()
