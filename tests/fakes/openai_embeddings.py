"""Wire shapes of ``POST /v1/embeddings``: limits, both encodings, deterministic vectors."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from tests.fakes.openai_steps import Body, HttpError, Vectors

WIDTH = 1536
MAX_INPUTS = 2_048
MAX_TOKENS_PER_INPUT = 8_192
MAX_TOKENS_PER_REQUEST = 300_000

Input: TypeAlias = str | list[int]


def inputs_of(body: Body) -> list[Input]:
    """The inputs of a request: one text, many texts, one token list or many."""
    given = body["input"]
    if isinstance(given, str) or (given and isinstance(given[0], int)):
        return [given]
    return list(given)


def token_count(text: Input) -> int:
    """Exact for token lists; for text one token for every four UTF-8 bytes, rounded up."""
    return -(-len(text.encode()) // 4) if isinstance(text, str) else len(text)


def limit_error(inputs: Sequence[Input]) -> HttpError | None:
    """The 400 that the documented limits demand, if any."""
    if not inputs or any(len(text) == 0 for text in inputs):
        return HttpError(400, None, "'$.input' is invalid.")
    if len(inputs) > MAX_INPUTS:
        return HttpError(400, None, f"'$.input' is too long: more than {MAX_INPUTS} inputs.")
    counts = [token_count(text) for text in inputs]
    if max(counts) > MAX_TOKENS_PER_INPUT:
        return HttpError(400, None, f"Maximum context length is {MAX_TOKENS_PER_INPUT} tokens.")
    if sum(counts) > MAX_TOKENS_PER_REQUEST:
        message = f"Requested more than {MAX_TOKENS_PER_REQUEST} tokens per request."
        return HttpError(400, "max_tokens_per_request", message)
    return None


def vector(text: Input, width: int = WIDTH) -> NDArray[np.float32]:
    """A unit vector that depends on the text alone; texts that share words lie nearer."""
    words = re.findall(r"\w+", text.lower()) if isinstance(text, str) else map(str, text)
    total = _direction(repr(text), width) * 0.1
    for word in words:
        total = total + _direction(word, width)
    return (total / np.linalg.norm(total)).astype(np.float32)


def embeddings_body(body: Body, fault: Vectors) -> Body:
    """The reply to a request, with the fault that was asked for."""
    inputs = inputs_of(body)
    width = fault.width or body.get("dimensions") or WIDTH
    data = [
        {
            "object": "embedding",
            "index": index,
            "embedding": _encoded(vector(text, width), body.get("encoding_format", "float")),
        }
        for index, text in enumerate(inputs)
    ]
    data = data[: len(data) - fault.missing]
    if fault.reversed_order:
        data.reverse()
    total = sum(token_count(text) for text in inputs)
    usage = {"prompt_tokens": total, "total_tokens": total}
    return {"object": "list", "data": data, "model": body["model"], "usage": usage}


def _direction(seed: str, width: int) -> NDArray[np.float64]:
    digest = hashlib.sha256(seed.encode("utf-8", "surrogatepass")).digest()
    return np.random.default_rng(int.from_bytes(digest[:8], "big")).standard_normal(width)


def _encoded(values: NDArray[np.float32], encoding: str) -> str | list[float]:
    if encoding == "base64":
        return base64.b64encode(values.astype("<f4").tobytes()).decode()
    return [float(value) for value in values]
