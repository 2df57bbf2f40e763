"""Rules of the retry policy."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.ingest.backoff import Failure, NextRun, next_run

JITTERS = st.floats(0, 1, exclude_max=True)


@pytest.mark.parametrize(
    ("attempts", "jitter", "expected"),
    [
        (0, 0.0, NextRun(1, 1.0)),
        (0, 0.5, NextRun(1, 1.5)),
        (1, 0.0, NextRun(2, 2.0)),
        (3, 0.0, NextRun(4, 8.0)),
        (6, 0.0, NextRun(7, 64.0)),
        (7, 0.0, NextRun(8, None)),
        (30, 0.0, NextRun(31, None)),
    ],
)
def test_a_failed_job_waits_twice_as_long_each_time_and_dies_after_eight(
    attempts: int, jitter: float, expected: NextRun
) -> None:
    assert next_run(Failure.JOB, attempts, 8, jitter=jitter) == expected


@given(st.integers(0, 10_000), JITTERS)
def test_no_wait_is_longer_than_five_minutes_or_shorter_than_half_its_base(
    attempts: int, jitter: float
) -> None:
    delay = next_run(Failure.JOB, attempts, 100_000, jitter=jitter).delay_seconds
    assert delay is not None and 1.0 <= delay <= 300.0


@given(st.integers(0, 100), JITTERS)
def test_an_infrastructure_failure_is_retried_within_two_seconds_and_not_counted(
    attempts: int, jitter: float
) -> None:
    following = next_run(Failure.INFRASTRUCTURE, attempts, 8, jitter=jitter)
    assert following.attempts == attempts
    assert following.delay_seconds is not None and 0 < following.delay_seconds <= 2.0


@pytest.mark.parametrize(("asked", "expected"), [(0.5, 0.5), (60.0, 60.0), (9_000.0, 300.0)])
def test_a_wait_that_the_other_side_asks_for_is_kept_up_to_five_minutes(
    asked: float, expected: float
) -> None:
    following = next_run(Failure.INFRASTRUCTURE, 2, 8, jitter=0.0, retry_after_seconds=asked)
    assert following == NextRun(2, expected)


@given(st.integers(0, 100), JITTERS)
def test_a_missing_setting_never_kills_a_job(attempts: int, jitter: float) -> None:
    following = next_run(Failure.SETUP, attempts, 8, jitter=jitter)
    assert following.attempts == attempts
    assert following.delay_seconds is not None and 15.0 <= following.delay_seconds <= 30.0


@given(st.integers(0, 100), JITTERS)
def test_what_can_never_succeed_is_not_tried_again(attempts: int, jitter: float) -> None:
    assert next_run(Failure.PERMANENT, attempts, 8, jitter=jitter) == NextRun(attempts + 1, None)
