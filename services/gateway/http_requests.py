"""What the page may ask, read from bytes that nobody vouches for."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request

from recall.corpus.v1 import corpus_pb2
from services.corpus import Filter, filter_to_proto
from services.runtime.errors import invalid

MOST_BODY_BYTES = 16 * 1024
MOST_SEARCH_MESSAGES = 50
_SMALL_NUMBER = re.compile("[1-9][0-9]?")


@dataclass(frozen=True)
class Asked:
    """A question and what narrows it: all that a client can choose. Everything else is ignored."""

    question: str
    narrowing: corpus_pb2.Filter


async def read_body(request: Request, seconds: float, most_bytes: int = MOST_BODY_BYTES) -> bytes:
    """The body. Raises HTTPException 413 when it is too large and 408 when it is too slow."""
    body = bytearray()
    try:
        async with asyncio.timeout(seconds):
            async for part in request.stream():
                body += part
                if len(body) > most_bytes:
                    raise HTTPException(413, f"The body may have {most_bytes} bytes.")
    except TimeoutError:
        raise HTTPException(408, "The question did not arrive in time. Ask again.") from None
    return bytes(body)


def parse_ask(body: bytes) -> Asked:
    """The question of a JSON body. Raises CallError INVALID_ARGUMENT."""
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        raise invalid("body", 'must be JSON such as {"question": "..."}.') from None
    if not isinstance(value, dict):
        raise invalid("body", 'must be a JSON object such as {"question": "..."}.')
    narrowing = value.get("filter") or {}
    if not isinstance(narrowing, dict):
        raise invalid("filter", "must be an object with channel, author, after or before.")
    return Asked(_question(value.get("question")), parse_filter(narrowing))


def parse_search(query: Mapping[str, str]) -> tuple[Asked, int]:
    """The question (``q``), its filters and the number of messages wanted."""
    limit = query.get("limit", "12")
    if not _SMALL_NUMBER.fullmatch(limit) or int(limit) > MOST_SEARCH_MESSAGES:
        raise invalid("limit", f"must be a number from 1 to {MOST_SEARCH_MESSAGES}.")
    return Asked(_question(query.get("q")), parse_filter(query)), int(limit)


def parse_filter(value: Mapping[str, Any]) -> corpus_pb2.Filter:
    """``channel``, ``author``, ``after`` and ``before``; dates as 2026-08-03, or with a time."""
    return filter_to_proto(
        Filter(
            posted_after=_moment("after", value.get("after")),
            posted_before=_moment("before", value.get("before")),
            in_channel=_text("channel", value.get("channel") or ""),
            author=_text("author", value.get("author") or ""),
        )
    )


def _question(value: object) -> str:
    question = _text("question", value)
    if not question.strip():
        raise invalid("question", "must not be empty. Ask in a few words.")
    return question


def _text(field: str, value: object) -> str:
    if not isinstance(value, str):
        raise invalid(field, "must be text.")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise invalid(field, "holds half a character (a lone surrogate). Type it again.") from None
    return value


def _moment(field: str, value: object) -> datetime | None:
    if value is None or value == "":
        return None
    try:
        moment = datetime.fromisoformat(_text(field, value))
        return moment.replace(tzinfo=moment.tzinfo or UTC).astimezone(UTC)
    except (ValueError, OverflowError):
        raise invalid(field, "must be a date such as 2026-08-03.") from None
