"""Rules of what a page of history tells beside its messages."""

from __future__ import annotations

from services.ingest.blocks import Json
from services.ingest.history_pages import (
    Root,
    highest,
    is_past,
    lowest,
    roots_of,
    shown_ts,
    without_root,
)


def test_ts_are_compared_as_whole_numbers_of_any_width() -> None:
    given = ["999999999.999999", "1700000000.000200", "1700000000.000100", ""]
    assert lowest(given) == "999999999.999999"
    assert highest(given) == "1700000000.000200"
    assert lowest([]) == highest([""]) == ""


def test_a_bound_is_reached_at_itself_and_an_absent_one_never() -> None:
    assert is_past("1700000000.000100", "1700000000.000100")
    assert is_past("999.000000", "1700000000.000100")
    assert not is_past("1700000000.000101", "1700000000.000100")
    assert not is_past("", "1700000000.000100")
    assert not is_past("1700000000.000100", "")


def test_roots_tell_of_their_replies_and_shown_replies_are_no_roots() -> None:
    rows: list[Json] = [
        {"ts": "5.000100", "thread_ts": "1.000100", "subtype": "thread_broadcast"},
        {"ts": "4.000100"},
        {"ts": "3.0001", "thread_ts": "3.0001", "reply_count": 2, "latest_reply": "9.000100"},
        {"ts": "2.000100", "thread_ts": "2.000100", "reply_count": "many"},
        {"no": "ts"},
        {"ts": 1.5},
    ]
    assert roots_of(rows) == [
        Root("4.000100", 0, ""),
        Root("3.000100", 2, "9.000100"),
        Root("2.000100", 0, ""),
    ]
    assert shown_ts(rows) == ["5.000100", "4.000100", "3.000100", "2.000100"]


def test_a_page_of_a_thread_is_taken_without_its_root() -> None:
    rows: list[Json] = [{"ts": "1.0001"}, {"ts": "2.000100"}]
    assert without_root(rows, "1.000100") == [{"ts": "2.000100"}]
