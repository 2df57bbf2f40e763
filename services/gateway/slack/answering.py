"""What somebody asked in Slack, answered by the same pipeline as everywhere else."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime

import grpc

from recall.corpus.v1 import corpus_pb2
from recall.gateway.v1 import gateway_pb2
from recall.ingest.v1 import ingest_pb2
from recall.retrieve.v1 import retrieve_pb2
from services.corpus import Filter, filter_to_proto
from services.gateway.ask import ASK_SECONDS, SEARCH_SECONDS, Question, ask
from services.gateway.clients import reach
from services.gateway.deadline import deadline_in
from services.gateway.slack import commands
from services.gateway.slack.asker import Asker, Desk, names_of, readable_channels
from services.gateway.slack.blocks import escape
from services.gateway.slack.commands import Typed, Verb
from services.gateway.slack.replies import (
    Reply,
    coverage_notes,
    from_answer,
    from_search,
    from_window,
    told,
    with_notes,
)
from services.gateway.slack.thread_question import Talk, following_up, self_contained
from services.gateway.slack.workspace_settings import change_settings, show_settings
from services.gateway.window import (
    WINDOW_SECONDS,
    Window,
    catch_up,
    list_decisions,
    summarise,
)
from services.runtime.errors import CallError

READ_SECONDS = 5.0
ME = "me"
NO_THREAD = "I can not read this thread: it is not indexed, or you are not in its channel."


@dataclass(frozen=True)
class Request:
    """``text`` as typed; ``thread_id`` is a message of the thread that it is about, or empty;
    ``talk`` is the direct conversation that it goes on with."""

    asker: Asker
    context: corpus_pb2.QueryContext
    text: str
    thread_id: str = ""
    talk: Talk | None = None


async def answer(request: Request, desk: Desk) -> Reply:
    """The reply to what was typed. Raises CallError when a stage that is needed is away."""
    typed = commands.parse(request.text)
    if typed.verb is Verb.HELP:
        return told(commands.HELP)
    if not request.context.channel_ids and typed.verb is not Verb.SETTINGS:
        return told(commands.NO_CHANNELS)
    try:
        return await _answers()[typed.verb](request, typed, desk)
    except CallError as error:
        # What the person can mend is told; what they can not is the caller's to retry.
        if error.code in (grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.FAILED_PRECONDITION):
            return told(escape(error.message))
        raise


Answering = Callable[[Request, Typed, Desk], Awaitable[Reply]]


def _answers() -> dict[Verb, Answering]:
    return {
        Verb.ASK: _ask,
        Verb.SEARCH: _search,
        Verb.CATCH_UP: _window,
        Verb.SUMMARY: _window,
        Verb.DECISIONS: _window,
        Verb.CORRECT: _correct,
        Verb.SETTINGS: _settings,
    }


async def summarise_thread(request: Request, desk: Desk) -> Reply:
    """A summary of the thread that a shortcut points at."""
    window = Window(request.context, corpus_pb2.Filter(), request.thread_id)
    deadline = deadline_in(time.monotonic, WINDOW_SECONDS)
    try:
        written = await summarise(window, desk.stages, deadline)
    except CallError as error:
        if error.code is not grpc.StatusCode.NOT_FOUND:
            raise
        return told(NO_THREAD)
    return from_window(written, "")


async def correct(
    asker: Asker, context: corpus_pb2.QueryContext, older_id: str, newer_id: str, desk: Desk
) -> Reply:
    """Declare that a newer message replaces an older one; the asker may read both."""
    if older_id == newer_id:
        return told(commands.SAME_MESSAGE)
    wanted = retrieve_pb2.ReadMessagesRequest(context=context, message_ids=[older_id, newer_id])
    read = await reach("retrieve", desk.stages.retriever.ReadMessages, wanted, READ_SECONDS)
    if len(read.messages) != 2:
        return told(commands.NOT_BOTH_READABLE)
    older, newer = read.messages
    if older.posted_at.ToNanoseconds() > newer.posted_at.ToNanoseconds():
        return told(commands.NOT_NEWER)
    request = ingest_pb2.CorrectMessageRequest(
        workspace_id=asker.workspace_id,
        message_id=older_id,
        corrected_by_id=newer_id,
        person_id=asker.person_id,
    )
    await reach("ingest", desk.stages.ingester.CorrectMessage, request, READ_SECONDS)
    return told(commands.CORRECTED)


async def _ask(request: Request, typed: Typed, desk: Desk) -> Reply:
    asked = commands.read_question(typed.text, datetime.now(UTC))
    problem = asked.problem or await _unknown_channel(request, asked.narrowing, desk)
    if problem:
        return told(escape(problem))
    names = await names_of(request.asker.client, commands.mentioned_ids(asked.words))
    plain = commands.plain(asked.words, names)
    if request.talk:
        words = await following_up(plain, request.talk, request.asker, desk)
    else:
        words = await self_contained(plain, request.thread_id, request.context, desk)
    question = Question(
        text=words,
        context=request.context,
        narrowing=_narrowing(request, asked.narrowing),
        asker=request.asker.hashed,
    )
    deadline = deadline_in(time.monotonic, ASK_SECONDS)
    events = [event async for event in ask(question, desk.stages, deadline)]
    ended = events[-1]
    assert isinstance(ended, gateway_pb2.Answer)
    reply = from_answer(ended, request.text.strip())
    return await _covered(reply, request, asked.narrowing, desk)


async def _search(request: Request, typed: Typed, desk: Desk) -> Reply:
    asked = commands.read_question(typed.text, datetime.now(UTC))
    problem = asked.problem or await _unknown_channel(request, asked.narrowing, desk)
    if problem:
        return told(escape(problem))
    names = await names_of(request.asker.client, commands.mentioned_ids(asked.words))
    wanted = retrieve_pb2.SearchRequest(
        context=request.context,
        question=commands.plain(asked.words, names),
        filter=_narrowing(request, asked.narrowing),
    )
    found = await reach("retrieve", desk.stages.retriever.Search, wanted, SEARCH_SECONDS)
    return await _covered(from_search(found, request.text.strip()), request, asked.narrowing, desk)


async def _window(request: Request, typed: Typed, desk: Desk) -> Reply:
    asked = commands.read_filters(typed.text, datetime.now(UTC))
    problem = asked.problem or await _unknown_channel(request, asked.narrowing, desk)
    if problem:
        return told(escape(problem))
    narrowing = _narrowing(request, asked.narrowing)
    window = Window(request.context, await _named(narrowing, request, desk))
    deadline = deadline_in(time.monotonic, WINDOW_SECONDS)
    if typed.verb is Verb.CATCH_UP:
        written = await catch_up(window, desk.stages, deadline)
    elif typed.verb is Verb.SUMMARY:
        written = await summarise(window, desk.stages, deadline)
    else:
        written, _ = await list_decisions(window, desk.stages, deadline)
    reply = from_window(written, request.text.strip())
    return await _covered(reply, request, asked.narrowing, desk)


async def _correct(request: Request, typed: Typed, desk: Desk) -> Reply:
    links = commands.linked_messages(typed.text)
    if len(links) != 2:
        return told(commands.HOW_TO_CORRECT)
    older, newer = (request.asker.message_id(*link) for link in links)
    return await correct(request.asker, request.context, older, newer, desk)


async def _settings(request: Request, typed: Typed, desk: Desk) -> Reply:
    if typed.text:
        return await change_settings(request.asker, typed.text, desk)
    return await show_settings(request.context, await _coverage(request, (), desk), desk)


async def _unknown_channel(request: Request, narrowing: Filter, desk: Desk) -> str:
    """What is told about a channel that the asker can not read, whether it exists or not."""
    wanted = narrowing.in_channel
    if not wanted or await _channel_ids(request, wanted, desk):
        return ""
    return commands.NO_CHANNEL.format(name=wanted)


async def _channel_ids(request: Request, wanted: str, desk: Desk) -> list[str]:
    return [
        channel.channel_id
        for channel in await readable_channels(request.context, desk)
        if wanted == channel.channel_id or wanted.casefold() == channel.name.casefold()
    ]


async def _named(narrowing: corpus_pb2.Filter, request: Request, desk: Desk) -> corpus_pb2.Filter:
    """The filter with its channel by name, so that what was read is described by its name."""
    for channel in await readable_channels(request.context, desk):
        if channel.channel_id == narrowing.in_channel:
            narrowing.in_channel = channel.name
    return narrowing


def _narrowing(request: Request, narrowing: Filter) -> corpus_pb2.Filter:
    wire = filter_to_proto(narrowing)
    if wire.author.casefold() == ME:
        wire.author = request.asker.person_id
    return wire


async def _covered(reply: Reply, request: Request, narrowing: Filter, desk: Desk) -> Reply:
    in_channel = narrowing.in_channel
    wanted = await _channel_ids(request, in_channel, desk) if in_channel else ()
    return with_notes(reply, await _coverage(request, tuple(wanted), desk))


async def _coverage(request: Request, wanted: tuple[str, ...], desk: Desk) -> tuple[str, ...]:
    """A line on unread history. Nothing depends on it, so without ingest there is none."""
    if not request.context.channel_ids:
        return ()
    about = ingest_pb2.GetCoverageRequest(
        workspace_id=request.context.workspace_id,
        channel_ids=wanted or request.context.channel_ids,
    )
    try:
        coverage = await reach("ingest", desk.stages.ingester.GetCoverage, about, READ_SECONDS)
    except CallError:
        return ()
    return coverage_notes(coverage)
