"""Rules of waiting after Slack said "too many calls", and of trying a page again."""

from __future__ import annotations

import pytest

from services.ingest.history_retry import retry_of
from services.ingest.pacing import CAP_SECONDS, Pace, hold_off_seconds


@pytest.mark.parametrize(
    ("told", "refusals", "jitter", "seconds"),
    [
        (3, 0, 0.9, 3),
        (60, 5, 0.0, 60),
        (None, 0, 0.0, 1),
        (None, 0, 0.5, 1.25),
        (0, 0, 0.0, 1),
        (0, 3, 0.0, 8),
        (None, 100, 0.0, CAP_SECONDS),
        (0.2, 0, 0.0, 1),
        (1e9, 0, 0.0, 3600),
    ],
)
def test_a_method_rests_as_long_as_told_and_never_less_than_a_second(
    told: float | None, refusals: int, jitter: float, seconds: float
) -> None:
    assert hold_off_seconds(told, refusals, jitter) == pytest.approx(seconds)


def test_the_default_pace_is_a_call_a_minute_and_fifteen_messages() -> None:
    pace = Pace()
    assert (pace.interval_of("conversations.history"), pace.page_size) == (60.0, 15)
    assert pace.interval_of("conversations.replies") == 60.0
    assert pace.interval_of("users.list") == 3.0


def test_the_third_failure_in_a_row_counts_as_failed_and_is_tried_at_a_slow_pace() -> None:
    tries = [retry_of(attempts, 0.0) for attempts in range(12)]
    assert [retry.has_failed for retry in tries[:4]] == [False, False, True, True]
    assert [retry.delay_seconds for retry in tries[:4]] == [1.0, 2.0, 900.0, 1800.0]
    assert max(retry.delay_seconds for retry in tries) == 900.0 * 2**6
    assert [retry.attempts for retry in tries] == list(range(1, 13))
