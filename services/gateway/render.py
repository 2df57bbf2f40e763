"""What the page is sent. Pure: protos in, JSON values out."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import grpc

from recall.corpus.v1 import corpus_pb2
from recall.error.v1 import error_pb2
from recall.gateway.v1 import gateway_pb2
from recall.retrieve.v1 import retrieve_pb2
from services.corpus import instant
from services.gateway.ranking import tier_name
from services.runtime.errors import CallError

Json = dict[str, Any]

_BRACKETS = re.compile(r"\s*\[([^\[\]\n]+)\]")
_SEPARATORS = re.compile(r"[\s,;]+")
_ITEM = re.compile(r"\s*[-*•]\s+")
# Words for operators; a visitor is told the same by the rest of the sentence.
_CODES = re.compile(rf" \((?:{'|'.join(code.name for code in grpc.StatusCode)})\)")
# Said once, by ``retry_after_seconds``: the page counts down.
_WAIT = re.compile(r" ?Ask again in \d+ s\.")

_STATUS = {
    grpc.StatusCode.INVALID_ARGUMENT: 400,
    grpc.StatusCode.UNAUTHENTICATED: 401,
    grpc.StatusCode.PERMISSION_DENIED: 403,
    grpc.StatusCode.NOT_FOUND: 404,
    grpc.StatusCode.FAILED_PRECONDITION: 503,
    grpc.StatusCode.RESOURCE_EXHAUSTED: 429,
    grpc.StatusCode.UNAVAILABLE: 503,
    grpc.StatusCode.DEADLINE_EXCEEDED: 504,
}


def event(name: str, data: Json) -> bytes:
    """One server-sent event. JSON holds no line break, so it is one data line."""
    return f"event: {name}\ndata: {dumped(data)}\n\n".encode()


def dumped(data: Json) -> str:
    """JSON text."""
    return json.dumps(data, ensure_ascii=False, allow_nan=False)


def progress_json(progress: gateway_pb2.Progress) -> Json:
    """A step by its name in lower case."""
    return {
        "step": gateway_pb2.Step.Name(progress.step).removeprefix("STEP_").lower(),
        "detail": progress.detail,
    }


def answer_json(answer: gateway_pb2.Answer) -> Json:
    """An answer, in the words of ``recall ask --json`` and with ``blocks`` for the page."""
    return {
        "outcome": corpus_pb2.Outcome.Name(answer.outcome).removeprefix("OUTCOME_").lower(),
        "text": answer.text,
        "blocks": blocks(answer.text, [m.message_id for m in answer.citations]),
        "reason": _CODES.sub("", answer.reason),
        "refusal": answer.refusal,
        "confidence": answer.confidence if answer.HasField("confidence") else None,
        "citations": [message_json(message) for message in answer.citations],
        "unverified_sources": [hit_json(hit) for hit in answer.unverified_sources],
        "rerank_tier": tier_name(answer.rerank_tier),
        "generation_id": answer.generation_id,
        "degraded": list(answer.degraded),
        "timings_ms": dict(answer.timings_ms),
        "writer": answer.writer,
    }


def search_json(found: retrieve_pb2.SearchResponse) -> Json:
    """A search, in the words of ``recall search --json``."""
    return {
        "generation_id": found.pin.generation_id,
        "abstained": found.abstained,
        "reason": found.reason,
        "confidence": found.confidence if found.HasField("confidence") else None,
        "messages": [hit_json(hit) for hit in found.hits],
        "degraded": list(found.degraded),
    }


def thread_json(messages: Iterable[corpus_pb2.Message], opened_id: str) -> Json:
    """A thread and which of its messages was asked for."""
    return {"message_id": opened_id, "messages": [message_json(m) for m in messages]}


def hit_json(hit: corpus_pb2.Hit) -> Json:
    """A message with how it was found."""
    return {
        **message_json(hit.message),
        "fused_score": hit.fused_score,
        "dense_rank": hit.dense_rank if hit.HasField("dense_rank") else None,
        "lexical_rank": hit.lexical_rank if hit.HasField("lexical_rank") else None,
        "verdict": corpus_pb2.Verdict.Name(hit.verdict).removeprefix("VERDICT_").lower(),
        "confidence": hit.confidence if hit.HasField("confidence") else None,
        "superseded_by": hit.superseded_by,
    }


def message_json(message: corpus_pb2.Message) -> Json:
    """A message as a reader sees it."""
    edited = message.HasField("edited_at")
    return {
        "message_id": message.message_id,
        "channel": message.channel_name,
        "author": message.author_name,
        "posted_at": instant(message.posted_at).isoformat().replace("+00:00", "Z"),
        "edited_at": instant(message.edited_at).isoformat() if edited else None,
        "permalink": message.permalink,
        "text": message.text,
        "is_bot": message.is_bot,
    }


def error_json(reason: str, message: str, retry_after_seconds: float | None = None) -> Json:
    """An error; ``retry_after_seconds`` where waiting helps."""
    return {
        "error": {
            "reason": reason,
            "message": message,
            "retry_after_seconds": retry_after_seconds,
        }
    }


def call_error_json(error: CallError) -> Json:
    """A failed call, in words for a visitor."""
    message = _CODES.sub("", error.message)
    if error.retry_after_seconds is not None:
        message = _WAIT.sub("", message)
    return error_json(error.reason_name, message, error.retry_after_seconds)


def http_status(error: CallError) -> int:
    """The HTTP status of a failed call. Errors of ours that only an operator mends are 503."""
    if error.reason == error_pb2.ERROR_REASON_WORKSPACE_NOT_FOUND:
        return 503
    return _STATUS.get(error.code, 500)


def blocks(text: str, cited_ids: Sequence[str]) -> list[Json]:
    """The text as paragraphs and list items with numbered citations.

    A block is ``{"kind": "paragraph" | "item", "segments": [...]}``; a segment is ``{"text": ...}``
    or ``{"citations": [1, 2]}``, numbers into the citations, from 1. Brackets that hold anything
    else than cited ids stay text.
    """
    numbers = {message_id: number for number, message_id in enumerate(cited_ids, start=1)}
    return [_block(line, numbers) for line in text.splitlines() if line.strip()]


def _block(line: str, numbers: Mapping[str, int]) -> Json:
    bullet = _ITEM.match(line)
    body = line[bullet.end() :] if bullet else line.strip()
    return {"kind": "item" if bullet else "paragraph", "segments": _segments(body, numbers)}


def _segments(line: str, numbers: Mapping[str, int]) -> list[Json]:
    segments: list[Json] = []
    position = 0
    for found in _BRACKETS.finditer(line):
        ids = [part for part in _SEPARATORS.split(found[1]) if part]
        if not ids or any(message_id not in numbers for message_id in ids):
            continue
        if found.start() > position:
            segments.append({"text": line[position : found.start()]})
        _cite(segments, [numbers[message_id] for message_id in ids])
        position = found.end()
    if position < len(line):
        segments.append({"text": line[position:]})
    return segments


def _cite(segments: list[Json], cited: list[int]) -> None:
    """Citations side by side are one segment."""
    if segments and "citations" in segments[-1]:
        cited = [*segments.pop()["citations"], *cited]
    segments.append({"citations": list(dict.fromkeys(cited))})
