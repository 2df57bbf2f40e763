"""A question inside a thread, made self-contained: by a model, else with the thread's own words."""

from __future__ import annotations

import grpc

from recall.answer.v1 import answer_pb2
from recall.corpus.v1 import corpus_pb2
from recall.retrieve.v1 import retrieve_pb2
from services.gateway.clients import reach
from services.gateway.slack import commands
from services.gateway.slack.asker import Desk
from services.runtime.errors import CallError

READ_SECONDS = 5.0
# Somebody waits: an answer to the rule's question is better than a late one.
REWRITE_SECONDS = 15.0


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
    rewritten = await _rewritten(words, thread, desk)
    return rewritten or commands.with_context(words, thread.messages[0].text)


async def _rewritten(words: str, thread: retrieve_pb2.ReadThreadResponse, desk: Desk) -> str:
    """A model's words; empty without a model, or when it can not say."""
    request = answer_pb2.RewriteQuestionRequest(question=words, thread=thread.messages)
    try:
        made = await reach("answer", desk.stages.writer.RewriteQuestion, request, REWRITE_SECONDS)
    except CallError:
        return ""
    return commands.without_filter_words(made.question) if made.is_rewritten else ""
