"""Rules of the estimate of how long reading history will take."""

from __future__ import annotations

from services.ingest.history_estimate import NextSlots, ThreadCalls, Unread, seconds_left

DAY = 86_400.0
NONE = ThreadCalls(0, 0)


def test_the_unread_part_is_taken_to_be_as_dense_as_the_read_one() -> None:
    assert seconds_left([Unread(4, 2 * DAY, 10 * DAY)], NONE, 4, 60.0) == 20 * 60.0


def test_a_channel_that_was_not_begun_counts_as_the_others_do_on_average() -> None:
    channels = [Unread(4, DAY, DAY), Unread(2, DAY, DAY), Unread(0, None, None)]
    assert seconds_left(channels, NONE, 6, 60.0) == 9 * 60.0


def test_an_unfinished_channel_needs_a_page_more_at_least() -> None:
    assert seconds_left([Unread(4, DAY, 0.0)], NONE, 4, 60.0) == 60.0


def test_nothing_is_said_before_the_first_page_and_when_nothing_is_left() -> None:
    assert seconds_left([Unread(0, None, None)], ThreadCalls(5, 5), 0, 60.0) is None
    assert seconds_left([Unread(3, DAY, None)], NONE, 3, 60.0) is None
    assert seconds_left([], NONE, 3, 60.0) is None


def test_threads_are_read_beside_channels_and_unread_pages_hold_as_many() -> None:
    assert seconds_left([], ThreadCalls(7, 40), 10, 60.0) == 7 * 60.0
    # 20 pages are left, each with 4 calls for threads; 7 known ones wait.
    channels = [Unread(10, DAY, 2 * DAY)]
    assert seconds_left(channels, ThreadCalls(7, 40), 10, 1.0) == 87.0
    assert seconds_left(channels, ThreadCalls(7, 0), 10, 1.0) == 20.0


def test_a_pause_that_slack_asked_for_is_added_to_what_it_holds_up() -> None:
    channels, threads = [Unread(10, DAY, DAY)], ThreadCalls(4, 0)
    held = NextSlots(history_seconds=3_600.0)
    assert seconds_left(channels, threads, 10, 60.0, held) == 10 * 60.0 + 3_540.0
    # The next call within the usual interval is no pause.
    assert seconds_left(channels, threads, 10, 60.0, NextSlots(59.0, 60.0)) == 600.0
    # Replies that rest hold up replies only, and nothing when there are none to read.
    assert seconds_left(channels, threads, 10, 60.0, NextSlots(0.0, 3_600.0)) == 4 * 60.0 + 3_540.0
    assert seconds_left(channels, NONE, 10, 60.0, NextSlots(0.0, 3_600.0)) == 600.0
