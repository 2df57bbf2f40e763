"""What a button carries in its value, at most 2,000 characters, and how it is read back. Pure."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

from services.gateway.slack.replies import Reply

VALUE_CHARACTERS = 2_000
# A value that unpacks to more than this is none of ours.
UNPACKED_BYTES = 100_000


@dataclass(frozen=True)
class Shared:
    """What a "Share" button carries: the text with its citations as numbers."""

    delivery_id: str
    question: str
    text: str


def share_value(delivery_id: str, reply: Reply) -> str:
    """The value of the "Share" button; empty when the answer is too long to be carried."""
    ids = [message.message_id for message in reply.sources]
    carried = [delivery_id, reply.question, ids_as_numbers(reply.text, ids)]
    packed = zlib.compress(json.dumps(carried, ensure_ascii=False).encode(), 9)
    value = base64.b85encode(packed).decode()
    return value if len(value) <= VALUE_CHARACTERS else ""


def read_share_value(value: str) -> Shared | None:
    """What a button carried; None when it is none of ours."""
    try:
        packed = base64.b85decode(value)
        unpacked = json.loads(zlib.decompressobj().decompress(packed, UNPACKED_BYTES))
        delivery_id, question, text = (str(part) for part in unpacked)
    except (ValueError, TypeError, zlib.error):
        return None
    return Shared(delivery_id, question, text)


def judgement_value(delivery_id: str, question: str) -> str:
    """The value of "Helpful" and "Not helpful"."""
    value = json.dumps([delivery_id, question], ensure_ascii=False)
    return value if len(value) <= VALUE_CHARACTERS else json.dumps([delivery_id, ""])


def read_judgement_value(value: str) -> tuple[str, str] | None:
    """Delivery id and question; None when it is none of ours."""
    try:
        delivery_id, question = (str(part) for part in json.loads(value))
    except (ValueError, TypeError):
        return None
    return delivery_id, question


def ids_as_numbers(text: str, ids: Sequence[str]) -> str:
    """The text with its citations as ``[1]``."""
    for number, message_id in enumerate(ids, start=1):
        text = text.replace(f"[{message_id}]", f"[\x1f{number}]")
    return text


def numbered_as_ids(text: str, ids: Sequence[str]) -> str:
    """The inverse of ``ids_as_numbers``."""
    for number, message_id in enumerate(ids, start=1):
        text = text.replace(f"[\x1f{number}]", f"[{message_id}]")
    return text
