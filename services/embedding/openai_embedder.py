"""OpenAI's text-embedding-3-small through the official client.

Token counts are bounded from above by UTF-8 bytes (a token is at least one byte), so that no
request needs a tokenizer: a text over 8,191 bytes is cut there, and a request holds at most
2,048 texts and 250,000 bytes. The documented limits are 8,192 tokens a text and 2,048 texts and
300,000 tokens a request.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import json
from collections.abc import Iterator, Sequence
from typing import Any

import grpc
import numpy as np
import openai

from recall.error.v1 import error_pb2
from services.embedding.identity import EMPTY, OPENAI, EmbedderIdentity, Skipped, Vector
from services.runtime import call as calls
from services.runtime.errors import CallError, invalid, unavailable

WINDOW_BYTES = OPENAI.window_tokens
MAX_TEXTS = 2_048
MAX_REQUEST_BYTES = 250_000

IDENTITY = OPENAI

DEFAULT_BASE_URL = "https://api.openai.com/v1"
QUESTION_SECONDS = 10.0
QUESTION_RETRIES = 1
PASSAGES_SECONDS = 60.0
PASSAGES_RETRIES = 3
# Tells a model that refuses one text from a model that refuses everything.
PROBE = "ready"


class MalformedReplyError(Exception):
    """A reply that can not be matched with its texts; never used by position."""


class OpenAIEmbedder:
    """text-embedding-3-small. The client is made at the first use."""

    def __init__(self, api_key: str, base_url: str = "") -> None:
        self._api_key = api_key
        self._base_url = base_url or DEFAULT_BASE_URL
        self._client: openai.AsyncOpenAI | None = None

    @property
    def identity(self) -> EmbedderIdentity:
        """The identity, known without a request."""
        return IDENTITY

    async def embed_question(self, text: str) -> Vector:
        """See ``Embedder.embed_question``. Ends within the call's deadline, at most 10 s."""
        if not text.strip():
            raise invalid("question", EMPTY.reason)
        seconds = calls.remaining_seconds(QUESTION_SECONDS)
        client = self._connected().with_options(timeout=seconds, max_retries=QUESTION_RETRIES)
        try:
            async with asyncio.timeout(seconds):
                return (await _request(client, [cut(text)]))[0]
        except openai.BadRequestError:
            raise invalid("question", "the embedding model refuses it") from None
        except TimeoutError:
            raise _down("OpenAI did not embed the question in time.") from None

    async def embed_passages(self, texts: Sequence[str]) -> list[Vector | Skipped]:
        """See ``Embedder.embed_passages``. Requests go out one after the other."""
        client = self._connected()
        results: list[Vector | Skipped] = [EMPTY] * len(texts)
        pieces = {i: cut(text) for i, text in enumerate(texts) if text.strip()}
        for batch in packed(pieces):
            found = await _isolating(client, [pieces[i] for i in batch])
            for position, result in zip(batch, found, strict=True):
                results[position] = result
        if pieces and all(isinstance(results[i], Skipped) for i in pieces):
            await _probe(client)
        return results

    async def aclose(self) -> None:
        """Close the connections."""
        if self._client is not None:
            await self._client.close()

    def _connected(self) -> openai.AsyncOpenAI:
        if self._client is None:
            self._client = openai.AsyncOpenAI(
                api_key=self._api_key,
                base_url=self._base_url,
                timeout=PASSAGES_SECONDS,
                max_retries=PASSAGES_RETRIES,
            )
        return self._client


def cut(text: str) -> str:
    """The text's longest beginning of at most ``WINDOW_BYTES``; a lone surrogate becomes "?"."""
    return text.encode("utf-8", "replace")[:WINDOW_BYTES].decode("utf-8", "ignore")


def packed(pieces: dict[int, str]) -> Iterator[list[int]]:
    """Positions of the texts of each request, in order, within the limits of a request."""
    batch: list[int] = []
    total = 0
    for position, text in pieces.items():
        size = len(text.encode())
        if batch and (len(batch) == MAX_TEXTS or total + size > MAX_REQUEST_BYTES):
            yield batch
            batch, total = [], 0
        batch.append(position)
        total += size
    if batch:
        yield batch


def vectors_of(reply: bytes, count: int) -> list[Vector]:
    """The unit vectors of a reply by their ``index``. Raises MalformedReplyError."""
    try:
        found = {item["index"]: _vector(item["embedding"]) for item in json.loads(reply)["data"]}
    except (ValueError, TypeError, KeyError, binascii.Error) as error:
        raise MalformedReplyError(f"it is not an embeddings reply ({error!r:.80})") from None
    if set(found) != set(range(count)):
        raise MalformedReplyError(f"it has {len(found)} vectors for {count} texts")
    return [found[index] for index in range(count)]


def _vector(encoded: str | list[float]) -> Vector:
    if isinstance(encoded, str):
        values = np.frombuffer(base64.b64decode(encoded, validate=True), "<f4")
    else:
        values = np.asarray(encoded, np.float32)
    length = float(np.linalg.norm(values))
    if values.shape != (IDENTITY.width,) or not np.isfinite(length) or length == 0:
        raise ValueError(f"a vector of shape {values.shape} and length {length}")
    return (values / np.float32(length)).astype(np.float32)


async def _isolating(client: openai.AsyncOpenAI, texts: list[str]) -> list[Vector | Skipped]:
    """The vectors of a request; a refused one is halved until the refused text stands alone."""
    try:
        return list(await _request(client, texts))
    except openai.BadRequestError as error:
        if len(texts) == 1:
            return [Skipped(f"the embedding model refuses the text ({error.code or 400})")]
    half = len(texts) // 2
    return [*await _isolating(client, texts[:half]), *await _isolating(client, texts[half:])]


async def _probe(client: openai.AsyncOpenAI) -> None:
    try:
        await _request(client, [PROBE])
    except openai.BadRequestError as error:
        raise _down(f"OpenAI refuses every text ({error.code or 400}).") from None


async def _request(client: openai.AsyncOpenAI, texts: list[str]) -> list[Vector]:
    """One request. A refusal (400) is the caller's to handle; every other failure is CallError."""
    try:
        reply = await client.embeddings.with_raw_response.create(
            model=IDENTITY.model, input=texts, encoding_format="base64"
        )
        return vectors_of(reply.content, len(texts))
    except openai.BadRequestError:
        raise
    except openai.APIError as error:
        raise _failure(error) from None
    except MalformedReplyError as error:
        raise _down(f"The reply of OpenAI can not be used: {error}.") from None


def _failure(error: openai.APIError) -> CallError:
    if isinstance(error, openai.AuthenticationError | openai.PermissionDeniedError):
        return _setup("OpenAI refuses the key: check OPENAI_API_KEY.")
    if isinstance(error, openai.NotFoundError):
        return _setup(f"OpenAI does not offer {IDENTITY.model} here: check OPENAI_BASE_URL.")
    if error.code == "insufficient_quota":
        return _setup("The quota of the OpenAI account is used up: raise it, or use another key.")
    return _down(f"OpenAI can not be reached ({type(error).__name__}).", _retry_after(error))


def _retry_after(error: openai.APIError) -> float:
    headers: Any = error.response.headers if isinstance(error, openai.APIStatusError) else {}
    try:
        return max(0.0, float(headers.get("retry-after", 2.0)))
    except ValueError:
        return 2.0


def _setup(message: str) -> CallError:
    return CallError(
        grpc.StatusCode.FAILED_PRECONDITION, error_pb2.ERROR_REASON_EMBEDDER_UNAVAILABLE, message
    )


def _down(message: str, retry_after_seconds: float = 2.0) -> CallError:
    return unavailable(error_pb2.ERROR_REASON_EMBEDDER_UNAVAILABLE, message, retry_after_seconds)
