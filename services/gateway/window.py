"""Texts about a window of messages: catch-up, summary, decisions.

Messages are read in time order and are not reranked.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from recall.answer.v1 import answer_pb2
from recall.corpus.v1 import corpus_pb2
from recall.gateway.v1 import gateway_pb2
from recall.retrieve.v1 import retrieve_pb2
from services.corpus import instant
from services.gateway.checking import (
    ANSWER_UNAVAILABLE,
    UNUSABLE_REPLY,
    WINDOW_TRUNCATED,
    Checked,
    abstained,
    check,
    is_usable,
    unwritten,
)
from services.gateway.clients import Stages, reach
from services.gateway.deadline import Deadline, Stopwatch
from services.gateway.reread import still_unchanged, suppressed_if_changed
from services.runtime.errors import CallError

WINDOW_SECONDS = 180.0
READ_SECONDS = 15.0
WRITE_SECONDS = 120.0
# The newest messages are kept. 2,000 messages of a busy team are about a week.
MOST_MESSAGES = 2_000
# What the answer stage is sent at once.
MOST_BYTES = 16 * 1024 * 1024
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


@dataclass(frozen=True)
class Timeline:
    """Messages oldest first; ``truncated`` when older ones of the window were left out.

    ``scope`` describes the window in words; ``reason`` says why there are no messages.
    """

    messages: tuple[corpus_pb2.Message, ...]
    truncated: bool
    scope: str
    reason: str = ""


@dataclass(frozen=True)
class Written:
    """What the writer made of a window."""

    text: answer_pb2.WrittenText
    decisions: tuple[answer_pb2.Decision, ...] = ()


Write = Callable[[list[corpus_pb2.Message], str, float], Awaitable[Written]]


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
    timeline = await read_timeline(window, stages, deadline)
    stopwatch.lap("read")
    if not timeline.messages:
        nothing = abstained(timeline.reason or f"There are no messages in {timeline.scope}.")
        return _text(nothing, timeline, stopwatch), ()
    written = await _written(write, timeline, deadline)
    stopwatch.lap("answer")
    if isinstance(written, str):
        kept = await still_unchanged(timeline.messages, window.context, stages, deadline)
        return _sources_only(written, timeline, kept, stopwatch), ()
    checked = check(written.text, timeline.messages)
    checked = await suppressed_if_changed(checked, window.context, stages, deadline)
    stopwatch.lap("check")
    return _text(checked, timeline, stopwatch), decisions_of(checked, written.decisions)


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


async def read_timeline(window: Window, stages: Stages, deadline: Deadline) -> Timeline:
    """The window's newest messages, oldest first."""
    if window.thread_of:
        return await _read_thread(window, stages, deadline)
    newest_first: list[corpus_pb2.Message] = []
    token, reason = "", ""
    while len(newest_first) < MOST_MESSAGES and _bytes(newest_first) < MOST_BYTES:
        page = await _page(window, token, PAGE_SIZE, stages, deadline)
        newest_first += page.messages
        token, reason = page.next_page_token, page.reason
        if not token:
            break
    kept = newest_first[:MOST_MESSAGES]
    return Timeline(tuple(reversed(kept)), bool(token), scope_of(window.narrowing), reason)


def _bytes(messages: Iterable[corpus_pb2.Message]) -> int:
    return sum(message.ByteSize() for message in messages)


async def _read_thread(window: Window, stages: Stages, deadline: Deadline) -> Timeline:
    request = retrieve_pb2.ReadThreadRequest(context=window.context, message_id=window.thread_of)
    seconds = deadline.share(READ_SECONDS)
    thread = await reach("retrieve", stages.retriever.ReadThread, request, seconds)
    return Timeline(tuple(thread.messages), truncated=False, scope="this thread")


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


async def _written(write: Write, timeline: Timeline, deadline: Deadline) -> Written | str:
    seconds = deadline.share(WRITE_SECONDS)
    try:
        written = await write(list(timeline.messages), timeline.scope, seconds)
    except CallError as error:
        return error.message
    return written if is_usable(written.text) else UNUSABLE_REPLY


def _text(checked: Checked, timeline: Timeline, stopwatch: Stopwatch) -> gateway_pb2.WindowText:
    return gateway_pb2.WindowText(
        outcome=checked.outcome,
        text=checked.text,
        reason=checked.reason,
        citations=checked.citations,
        messages_read=len(timeline.messages),
        scope=timeline.scope,
        degraded=[WINDOW_TRUNCATED] if timeline.truncated else [],
        timings_ms=stopwatch.milliseconds(),
    )


def _sources_only(
    reason: str, timeline: Timeline, kept: set[str], stopwatch: Stopwatch
) -> gateway_pb2.WindowText:
    text = _text(unwritten(reason), timeline, stopwatch)
    text.degraded.append(ANSWER_UNAVAILABLE)
    text.unverified_sources.extend(m for m in timeline.messages if m.message_id in kept)
    return text


def _day(moment: datetime) -> str:
    return moment.astimezone(UTC).date().isoformat()
