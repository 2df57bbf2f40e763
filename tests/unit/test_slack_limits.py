"""The paces, faults and cursors of the Slack for tests, as values."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.slack_server.faults import Bucket, Fault, Limits, Place
from tests.fakes.slack_server.paging import DOWN, Cursor, page_of
from tests.fakes.slack_server.state import SlackError


def walk(rows: list[str], limit: int, direction: str) -> list[str]:
    """Every row of every page."""
    start, cursor, seen = Cursor("rows", direction, 0), "", list[str]()
    while True:
        page = page_of(rows, str, limit, start, cursor)
        seen += page.rows
        cursor = page.next_cursor
        if not cursor:
            return seen


@given(st.sets(st.from_regex(r"[0-9]{4}", fullmatch=True)), st.integers(1, 7), st.booleans())
def test_pages_hold_every_row_once_in_order(rows: set[str], limit: int, down: bool) -> None:
    ordered = sorted(rows, reverse=down)

    assert walk(ordered, limit, DOWN if down else "") == ordered


@pytest.mark.parametrize(
    ("cursor", "epoch"),
    [
        ("not a cursor", 0),
        ("bm90IGpzb24=", 0),
        (Cursor("others", "1", 0).encode(), 0),
        (Cursor("rows", "1", 0).encode(), 1),
    ],
)
def test_a_cursor_of_nobody_of_another_listing_or_too_old_is_refused(
    cursor: str, epoch: int
) -> None:
    with pytest.raises(SlackError, match="invalid_cursor"):
        page_of(["1", "2"], str, 1, Cursor("rows", "", epoch), cursor)


def test_a_bucket_refills_evenly_up_to_its_capacity() -> None:
    bucket = Bucket(2, 60.0, 2.0, 0.0)

    waits = [bucket.take(now) for now in (0.0, 0.0, 0.0, 30.0, 30.0, 1000.0, 1000.0, 1000.0)]

    assert waits == [0.0, 0.0, 30.0, 0.0, 30.0, 0.0, 0.0, 30.0]


def test_a_bucket_survives_a_clock_that_is_set_back() -> None:
    bucket = Bucket(1, 60.0, 1.0, 100.0)

    assert (bucket.take(100.0), bucket.take(40.0), bucket.take(100.0)) == (0.0, 60.0, 0.0)


def test_the_wait_is_told_in_whole_seconds_and_at_least_one() -> None:
    limits = Limits()
    limits.set_pace("conversations.history", "", 1, 0.05)

    waits = [limits.retry_after("conversations.history", "T1", now) for now in (0.0, 0.01, 0.05)]

    assert waits == [0, 1, 0]


def test_faults_that_count_take_turns_and_numbered_ones_count_every_call() -> None:
    limits = Limits()
    limits.faults = [
        Fault("team.info", "ratelimited"),
        Fault("team.info", "http"),
        Fault("*", "reset", on_calls=frozenset({2, 4})),
    ]

    struck = [limits.fault_for("team.info", Place("T1")) for _ in range(5)]

    kinds = [fault.kind if fault else "" for fault in struck]
    assert kinds == ["ratelimited", "http", "", "reset", ""]


def test_the_strict_class_reads_fifteen_rows_once_a_minute() -> None:
    limits = Limits()
    limits.use_tier("strict")

    assert limits.page_limit("conversations.history", 200, 100) == 15
    assert limits.page_limit("conversations.replies", 0, 1000) == 15
    assert limits.retry_after("conversations.history", "T1", 0.0) == 0
    assert limits.retry_after("conversations.history", "T1", 1.0) == 59
    assert limits.retry_after("conversations.replies", "T1", 1.0) == 0
    assert limits.retry_after("conversations.history", "T2", 1.0) == 0
