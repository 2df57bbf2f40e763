"""The HTTP client of the Decisions API. It asks once; time limits are the caller's."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import NoReturn

import httpx

from services.rerank.failures import MalformedReplyError, UnreachableError, failure_of_status
from services.rerank.scoring import Body

PATH = "/api/alpha/decisions"
# Ten answers take about 4 kB; what is far beyond is no reply.
MAX_REPLY_BYTES = 1 << 20
# Ending a call early is the use case's business: it limits connecting, sending and reading
# together, which httpx's own timeouts, each for one step, can not.
_NO_TIMEOUT = None
_LIMITS = httpx.Limits(max_connections=256, max_keepalive_connections=32, keepalive_expiry=60)


@asynccontextmanager
async def open_http() -> AsyncIterator[httpx.AsyncClient]:
    """The one long-lived HTTP client of the process; connections are kept for the next call."""
    async with httpx.AsyncClient(timeout=_NO_TIMEOUT, limits=_LIMITS) as http:
        yield http


class DecisionsClient:
    """Sends bodies to one Decisions endpoint. No body and no key is ever logged."""

    def __init__(self, http: httpx.AsyncClient, base_url: str, key: str) -> None:
        self._http = http
        self._url = base_url.rstrip("/") + PATH
        # Uncompressed, so that the bound on the reply bounds the memory.
        self._headers = {
            "Authorization": f"Bearer {key}",
            "Content-Type": "application/json",
            "Accept-Encoding": "identity",
        }

    async def decide(self, body: Body) -> object:
        """The parsed JSON of a reply of status 200. Raises TierError for everything else."""
        status, raw = await self._post(body)
        if status != 200:
            raise failure_of_status(status, _parsed_or_none(raw))
        return parse_json(raw)

    async def _post(self, body: Body) -> tuple[int, bytes]:
        content = json.dumps(body, ensure_ascii=False, allow_nan=False).encode()
        request = self._http.stream("POST", self._url, content=content, headers=self._headers)
        try:
            async with request as response:
                return response.status_code, await _read(response)
        except httpx.TransportError as error:
            raise UnreachableError(type(error).__name__) from error


def parse_json(raw: bytes) -> object:
    """The JSON value of a reply; the NaN and Infinity that Python would take are refused.

    Raises MalformedReplyError.
    """
    if len(raw) > MAX_REPLY_BYTES:
        raise MalformedReplyError(f"it is larger than {MAX_REPLY_BYTES} bytes")
    try:
        return json.loads(raw, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        raise MalformedReplyError("it is not complete, valid JSON") from None


async def _read(response: httpx.Response) -> bytes:
    """The body up to just beyond the bound; of a body that breaks off, what arrived.

    A status says enough without its body, and half a JSON text does not parse.
    """
    raw = bytearray()
    try:
        async for piece in response.aiter_raw():
            raw += piece
            if len(raw) > MAX_REPLY_BYTES:
                break
    except httpx.TransportError:
        pass
    return bytes(raw)


def _parsed_or_none(raw: bytes) -> object:
    try:
        return parse_json(raw)
    except MalformedReplyError:
        return None


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
