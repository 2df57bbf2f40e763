"""Rules of the table of channels that ``recall status --workspace`` prints."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from recall.ingest.v1 import ingest_pb2
from services.cli.channel_status import as_object, as_text, duration
from services.corpus import timestamp

NOON = timestamp(datetime(2026, 6, 1, 12, tzinfo=UTC))
APRIL = timestamp(datetime(2026, 4, 1, tzinfo=UTC))


def channel(name: str, **fields: Any) -> ingest_pb2.ChannelCoverage:
    return ingest_pb2.ChannelCoverage(channel_id=f"C-{name}", channel_name=name, **fields)


def reply(*channels: ingest_pb2.ChannelCoverage, **fields: Any) -> ingest_pb2.GetCoverageResponse:
    return ingest_pb2.GetCoverageResponse(channels=channels, **fields)


def test_a_channel_shows_how_far_back_it_goes_how_fresh_it_is_and_what_failed() -> None:
    shown = as_text(
        reply(
            channel("done", messages=12, newest_at=NOON, history_state="complete",
                    completed_at=NOON),
            channel("half", messages=3, history_state="reading", read_down_to=APRIL,
                    threads_waiting=2, threads_failed=1, history_error="HTTP 503"),
            channel("archive", messages=7, oldest_at=APRIL, newest_at=NOON),
            seconds_left=7_800.0,
        )
    )  # fmt: skip
    assert shown.splitlines() == [
        "channel  messages  back to     newest            history   checked (UTC)     threads",
        "done     12        all         2026-06-01 12:00  complete  2026-06-01 12:00  -",
        "half     3         2026-04-01  -                 reading   -                 "
        "2 waiting, 1 failed",
        "    last failure: HTTP 503",
        "archive  7         2026-04-01  2026-06-01 12:00  imported  -                 -",
        "About 2 hours 10 minutes left, at the pace in force.",
    ]


def test_the_last_line_says_only_what_is_known() -> None:
    done = channel("a", history_state="complete", completed_at=NOON)
    begun = channel("b", history_state="waiting")
    imported = channel("c", messages=1)
    assert as_text(reply(done, imported)).splitlines()[-1] == "Everything is read."
    assert "can not be told yet" in as_text(reply(done, begun))
    assert as_text(reply(imported)).splitlines()[-1].startswith("c ")
    assert as_text(reply()) == "No channel yet."


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "under a minute"),
        (29, "under a minute"),
        (60, "1 minute"),
        (3_600, "1 hour"),
        (7_800, "2 hours 10 minutes"),
        (90_000, "1 day 1 hour"),
        (3 * 86_400 + 120, "3 days 2 minutes"),
    ],
)
def test_a_duration_has_two_units_at_most(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_json_tells_absence_as_null() -> None:
    found = as_object("W", reply(channel("b", history_state="waiting")))
    assert found["seconds_left"] is None
    assert found["channels"][0]["read_down_to"] is None
    assert found["channels"][0]["history"] == "waiting"
