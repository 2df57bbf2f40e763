"""Threads: which root, which order."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from services.corpus import Message
from services.ingest.threads import group_by_thread, in_order, root_ts

START = datetime(2026, 3, 2, 9, 14, tzinfo=UTC)


def message(local_id: str, microseconds: int = 0, root: str = "root") -> Message:
    return Message(
        message_id=local_id,
        workspace_id="w",
        channel_id="C1",
        channel_name="ops",
        author_id="U1",
        author_name="Ana",
        posted_at=START + timedelta(microseconds=microseconds),
        text=f"text of {local_id}",
        thread_root_id=root,
    )


def ids(messages: list[Message]) -> list[str]:
    return [each.message_id for each in messages]


def test_a_message_without_thread_is_its_own_root() -> None:
    assert root_ts("2.000000", "") == "2.000000"
    assert root_ts("2.000000", "1.000000") == "1.000000"


def test_replies_stand_in_order_of_time_to_the_microsecond() -> None:
    replies = [message("late", 3), message("early", 1), message("root"), message("middle", 2)]
    assert ids(in_order(replies)) == ["root", "early", "middle", "late"]


def test_the_root_leads_even_when_a_reply_claims_an_earlier_time() -> None:
    assert ids(in_order([message("reply", -5), message("root", 0)])) == ["root", "reply"]


def test_replies_without_their_root_are_a_thread_in_order() -> None:
    assert ids(in_order([message("b", 2), message("a", 1)])) == ["a", "b"]


def test_messages_of_one_instant_stand_in_order_of_their_ids() -> None:
    assert ids(in_order([message("b", 1), message("a", 1), message("root", 1)])) == [
        "root",
        "a",
        "b",
    ]


def test_a_root_that_comes_again_with_its_replies_is_one_message() -> None:
    assert ids(in_order([message("root"), message("root"), message("a", 1)])) == ["root", "a"]


def test_threads_are_told_apart_by_root() -> None:
    threads = group_by_thread(
        [message("a", 2), message("alone", 1, root="alone"), message("root", 0), message("b", 1)]
    )
    assert {root: ids(members) for root, members in threads.items()} == {
        "root": ["root", "b", "a"],
        "alone": ["alone"],
    }
