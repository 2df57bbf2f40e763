"""Wire shapes of ``POST /v1/responses``: one body, or server-sent events in documented order."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from tests.fakes.openai_steps import (
    Body,
    CutOff,
    ErrorFrame,
    Failed,
    Incomplete,
    Refusal,
    Step,
    Text,
)

_CITABLE = re.compile(r"\b(?:slack|synthetic|document):[^\s\"\\,\]]+")


def first_citable(body: Body) -> Text:
    """The default step: one sentence that cites the first message id of the request."""
    found = _CITABLE.search(json.dumps(body["input"]))
    return Text(f"See the first message. [{found.group()}]" if found else "Nothing to cite.")


def text_of(step: Step, body: Body) -> str:
    """The text a step writes, computed from the request where it asks for that."""
    if isinstance(step, Text):
        return step.text if isinstance(step.text, str) else step.text(body)
    return step.text if isinstance(step, Incomplete | CutOff) else ""


def response_body(step: Step, body: Body) -> Body:
    """The response object of a step."""
    response: Body = {
        "id": "resp_1",
        "object": "response",
        "created_at": 1_700_000_000,
        "status": "completed",
        "error": None,
        "incomplete_details": None,
        "instructions": body.get("instructions"),
        "metadata": {},
        "model": f"{body['model']}-2026-03-17",
        "output": [_reasoning(), _message(_part(step, body))],
        "parallel_tool_calls": True,
        "store": body.get("store", True),
        "tool_choice": "auto",
        "tools": [],
        "usage": _usage(),
    }
    if isinstance(step, Incomplete):
        response["status"] = "incomplete"
        response["incomplete_details"] = {"reason": step.reason}
    if isinstance(step, Failed | ErrorFrame):
        response.update(status="failed", output=[])
        response["error"] = {"code": step.code, "message": step.message}
    return response


def stream_events(step: Step, body: Body) -> Iterator[Body]:
    """Events of a streamed response; a cut-off stream ends after its first text."""
    final = response_body(step, body)
    begun = {
        **final,
        "status": "in_progress",
        "output": [],
        "error": None,
        "usage": None,
    }
    yield {"type": "response.created", "response": begun}
    yield {"type": "response.in_progress", "response": begun}
    if isinstance(step, ErrorFrame):
        yield {
            "type": "error",
            "code": step.code,
            "message": step.message,
            "param": None,
        }
        return
    if isinstance(step, Failed):
        yield {"type": "response.failed", "response": final}
        return
    yield from _item_events(final["output"][1], cut=isinstance(step, CutOff))
    if not isinstance(step, CutOff):
        yield {"type": f"response.{final['status']}", "response": final}


def frame(event: Body, number: int) -> bytes:
    """One server-sent event."""
    data = json.dumps({**event, "sequence_number": number})
    return f"event: {event['type']}\ndata: {data}\n\n".encode()


def _item_events(item: Body, *, cut: bool) -> Iterator[Body]:
    part = item["content"][0]
    kind = "refusal" if part["type"] == "refusal" else "output_text"
    words = part["refusal"] if kind == "refusal" else part["text"]
    at = {"item_id": item["id"], "output_index": 1, "content_index": 0}
    yield {
        "type": "response.output_item.added",
        "output_index": 1,
        "item": {**item, "status": "in_progress", "content": []},
    }
    yield {"type": "response.content_part.added", **at, "part": part}
    for piece in re.findall(r".{1,12}", words, re.DOTALL):
        yield {"type": f"response.{kind}.delta", **at, "delta": piece, "logprobs": []}
        if cut:
            return
    name = "refusal" if kind == "refusal" else "text"
    yield {"type": f"response.{kind}.done", **at, name: words, "logprobs": []}
    yield {"type": "response.content_part.done", **at, "part": part}
    yield {"type": "response.output_item.done", "output_index": 1, "item": item}


def _reasoning() -> Body:
    return {"id": "rs_1", "type": "reasoning", "summary": []}


def _message(part: Body) -> Body:
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": [part],
    }


def _part(step: Step, body: Body) -> Body:
    if isinstance(step, Refusal):
        return {"type": "refusal", "refusal": step.refusal}
    return {
        "type": "output_text",
        "text": text_of(step, body),
        "annotations": [],
        "logprobs": [],
    }


def _usage() -> Body:
    return {
        "input_tokens": 100,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": 20,
        "output_tokens_details": {"reasoning_tokens": 5},
        "total_tokens": 120,
    }
