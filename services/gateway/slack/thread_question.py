"""A question inside a thread, made self-contained: by a model, else with the thread's own words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import grpc

from recall.answer.v1 import answer_pb2
from recall.corpus.v1 import corpus_pb2
from recall.retrieve.v1 import retrieve_pb2
from services.corpus import timestamp
from services.gateway.clients import reach
from services.gateway.slack import commands
from services.gateway.slack.asker import Asker, Desk
from services.gateway.slack.web_api import SlackError
from services.runtime.errors import CallError

READ_SECONDS = 5.0
MOST_READ = 200
# Somebody waits: an answer to the rule's question is better than a late one.
REWRITE_SECONDS = 15.0


@dataclass(frozen=True)
class Talk:
    """A thread of a direct conversation, and the message in it that asks."""

    channel_id: str
    thread_ts: str
    message_ts: str


async def self_contained(
    words: str, thread_id: str, context: corpus_pb2.QueryContext, desk: Desk
) -> str:
    """The question as it can be searched. Raises CallError when the thread can not be read now.

    One that points at nothing, one outside a thread and one in a thread that the asker can not
    read are asked as they are.
    """
    if not thread_id or not commands.needs_context(words):
        return words
    wanted = retrieve_pb2.ReadThreadRequest(context=context, message_id=thread_id)
    try:
        thread = await reach("retrieve", desk.stages.retriever.ReadThread, wanted, READ_SECONDS)
    except CallError as error:
        if error.code is not grpc.StatusCode.NOT_FOUND:
            raise
        return words
    if not thread.messages:
        return words
    rewritten = await _rewritten(words, thread.messages, desk)
    return rewritten or commands.with_context(words, thread.messages[0].text)


async def following_up(words: str, talk: Talk, asker: Asker, desk: Desk) -> str:
    """A question in a direct conversation, with what the asker asked there before.

    Answers are left out: what they rest on may be gone by now. Without Slack the question is asked
    as it is.
    """
    if not commands.needs_context(words):
        return words
    try:
        page = await asker.client.call(
            "conversations.replies", channel=talk.channel_id, ts=talk.thread_ts, limit=MOST_READ
        )
    except SlackError:
        return words
    earlier = [
        corpus_pb2.Message(
            message_id=asker.message_id(talk.channel_id, str(row.get("ts"))),
            channel_name="direct message",
            author_name="the asker",
            posted_at=timestamp(datetime.fromtimestamp(int(str(row["ts"]).split(".")[0]), UTC)),
            text=commands.parse(commands.plain(str(row.get("text") or ""), {})).text,
        )
        for row in page.get("messages") or ()
        if row.get("user") == asker.person_id and row.get("ts") != talk.message_ts
    ]
    if not earlier:
        return words
    rewritten = await _rewritten(words, earlier, desk)
    return rewritten or commands.with_context(words, earlier[-1].text)


async def _rewritten(words: str, thread: Sequence[corpus_pb2.Message], desk: Desk) -> str:
    """A model's words; empty without a model, or when it can not say."""
    request = answer_pb2.RewriteQuestionRequest(question=words, thread=thread)
    try:
        made = await reach("answer", desk.stages.writer.RewriteQuestion, request, REWRITE_SECONDS)
    except CallError:
        return ""
    return commands.without_filter_words(made.question) if made.is_rewritten else ""
