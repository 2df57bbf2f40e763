"""Which thread a message belongs to, and the order inside it."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from services.corpus import Message


def root_ts(ts: str, thread_ts: str) -> str:
    """The ts of the root: ``thread_ts`` of a reply, else the message's own."""
    return thread_ts or ts


def reading_order(message: Message) -> tuple[bool, datetime, str]:
    """Sort key inside a thread: the root first, then time to the microsecond, then id."""
    return (message.message_id != message.thread_root_id, message.posted_at, message.message_id)


def in_order(messages: Iterable[Message]) -> list[Message]:
    """Messages of one thread, each once, root first and then by time.

    Replies whose root is absent are a thread all the same: the earliest of them leads.
    """
    once = {message.message_id: message for message in messages}
    return sorted(once.values(), key=reading_order)


def group_by_thread(messages: Iterable[Message]) -> dict[str, list[Message]]:
    """Threads by root id, in the order of their first message given; each thread in order."""
    threads: dict[str, list[Message]] = {}
    for message in messages:
        threads.setdefault(message.thread_root_id, []).append(message)
    return {root_id: in_order(members) for root_id, members in threads.items()}
