"""``recall ask`` and ``recall search``: one question, or a file of them over one connection."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import grpc

from recall.error.v1 import error_pb2
from recall.gateway.v1 import gateway_pb2
from services.cli import as_json, render
from services.cli.connection import (
    NOT_ANSWERED,
    OK,
    SOURCES_ONLY,
    UNAVAILABLE,
    Stack,
    UsageError,
)
from services.cli.options import Question, filter_of, read_questions, reader_of, trust_of
from services.cli.terminal import show
from services.runtime.errors import CallError, from_rpc_error, unavailable

ASK_SECONDS = 90.0
SEARCH_SECONDS = 30.0
_STATUS = {"answered": OK, "sources_only": SOURCES_ONLY}


async def run_ask(options: argparse.Namespace, stack: Stack) -> int:
    """``recall ask``; the exit status says how it ended."""
    if options.questions:
        return await _run_file(options, lambda question: _ask_as_json(stack, question, options))
    question = _question(options)
    show_progress = sys.stderr.isatty() and not options.json
    final = await _ask(stack, question, options, show_progress)
    if options.json:
        _print_json(as_json.answer(final))
    else:
        show(render.answer(final))
        if options.explain:
            show("\n" + render.trace(final.trace))
    return _STATUS.get(as_json.outcome_name(final.outcome), NOT_ANSWERED)


async def run_search(options: argparse.Namespace, stack: Stack) -> int:
    """``recall search``; 0 when something was found, 3 when nothing qualified."""
    if options.questions:
        return await _run_file(options, lambda question: _search_as_json(stack, question, options))
    try:
        reply = (await _search(stack, _question(options), options)).result
    except grpc.aio.AioRpcError as raised:
        refused = from_rpc_error(raised)
        if not refused.is_refusal:
            raise
        if options.json:
            _print_json(as_json.refusal(refused))
        else:
            show(f"Refused: {refused.message}")
        return NOT_ANSWERED
    if options.json:
        _print_json(as_json.search_result(reply))
    else:
        show(render.search_result(reply))
        if options.explain:
            show("\n" + render.explanation(reply.explanation))
    return NOT_ANSWERED if reply.abstained else OK


async def _ask(
    stack: Stack, question: Question, options: argparse.Namespace, show_progress: bool
) -> gateway_pb2.Answer:
    request = gateway_pb2.AskRequest(
        reader=question.reader,
        question=question.text,
        filter=question.narrowing,
        explain=options.explain,
        **trust_of(options),
    )
    async for event in stack.gateway.Ask(request, timeout=ASK_SECONDS):
        if event.HasField("answer"):
            return event.answer
        if show_progress:
            print(f"\r\033[K{event.progress.detail}…", end="\r\033[K", file=sys.stderr, flush=True)
    raise unavailable(
        error_pb2.ERROR_REASON_STAGE_UNAVAILABLE, "The stream ended without an answer. Ask again."
    )


async def _search(
    stack: Stack, question: Question, options: argparse.Namespace
) -> gateway_pb2.SearchResponse:
    request = gateway_pb2.SearchRequest(
        reader=question.reader,
        question=question.text,
        filter=question.narrowing,
        limit=options.limit,
        explain=options.explain,
        rerank=options.rerank,
        **trust_of(options),
    )
    return await stack.gateway.Search(request, timeout=SEARCH_SECONDS)


async def _ask_as_json(
    stack: Stack, question: Question, options: argparse.Namespace
) -> dict[str, Any]:
    return as_json.answer(await _ask(stack, question, options, False))


async def _search_as_json(
    stack: Stack, question: Question, options: argparse.Namespace
) -> dict[str, Any]:
    return as_json.search_result((await _search(stack, question, options)).result)


async def _run_file(
    options: argparse.Namespace, answer: Callable[[Question], Awaitable[dict[str, Any]]]
) -> int:
    """One JSON line a question, in the file's order. A question that fails does not end the run;
    how many did is said at the end, and the exit status is 1."""
    questions = list(read_questions(Path(options.questions), options))
    failed = 0
    for question in questions:
        line, is_answered = await _line(question, answer)
        failed += not is_answered
        print(json.dumps({"id": question.question_id} | line, ensure_ascii=False), flush=True)
    if not failed:
        return OK
    noun = "question" if len(questions) == 1 else "questions"
    print(f'{failed} of {len(questions)} {noun} failed: see "error".', file=sys.stderr)
    return UNAVAILABLE


async def _line(
    question: Question, answer: Callable[[Question], Awaitable[dict[str, Any]]]
) -> tuple[dict[str, Any], bool]:
    """A question's JSON, and whether there was a reply at all."""
    try:
        return await answer(question), True
    except grpc.aio.AioRpcError as raised:
        error = from_rpc_error(raised)
    except CallError as raised:
        error = raised
    if error.is_refusal:
        return as_json.refusal(error), True
    return {"error": {"reason": error.reason_name, "message": error.message}}, False


def _question(options: argparse.Namespace) -> Question:
    if not options.question:
        raise UsageError("QUESTION is missing: write it in quotes, or give --questions FILE.")
    return Question("", " ".join(options.question), reader_of(options), filter_of(options))


def _print_json(value: dict[str, Any]) -> None:
    print(json.dumps(value, ensure_ascii=False, indent=2))
