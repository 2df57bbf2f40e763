"""Which version of a message stays, and what of a thread's chunks is written."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.corpus import Source, slack_message_id
from services.ingest.chunk_rows import difference, thread_rows
from services.ingest.directory import Directory, Person
from services.ingest.records import IncomingMessage
from services.ingest.threads import group_by_thread
from services.ingest.timestamps import exact_ts, instant_of
from services.ingest.tokens import O200kEncoder
from services.ingest.versions import Fate, edit_order, resolve, version_of
from tests import builders as b

NOBODY = Directory()


def incoming(text: str, edited_ts: str = "", **fields: object) -> IncomingMessage:
    own_id = slack_message_id(b.TEAM, b.GENERAL, b.ts_of(0))
    message = IncomingMessage(
        message_id=own_id, source=Source.SLACK, channel_id=b.GENERAL, channel_name="general",
        author_id="U1", author_name="Ada", posted_at=b.instant(0), text=text,
        thread_root_id=own_id, ts=b.ts_of(0), edited_ts=edited_ts,
        edited_at=instant_of(edited_ts) if edited_ts else None,
    )  # fmt: skip
    return replace(message, **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("edited_ts", "edited_at", "order"),
    [
        ("", None, (0, 0)),
        ("1772442060.000009", None, (1772442060, 9)),
        ("999999999.900000", None, (999999999, 900000)),
        ("", datetime(1970, 1, 2, 0, 0, 1, 5, tzinfo=UTC), (86_401, 5)),
    ],
)
def test_the_order_of_an_edit(
    edited_ts: str, edited_at: datetime | None, order: tuple[int, int]
) -> None:
    assert edit_order(edited_ts, edited_at) == order


@given(st.integers(0, 10**11), st.integers(0, 999_999))
def test_ts_and_instant_of_an_edit_have_one_order(seconds: int, microseconds: int) -> None:
    ts = exact_ts(f"{seconds}.{microseconds:06d}")
    assert ts is not None
    assert edit_order(ts, None) == edit_order("", instant_of(ts)) == (seconds, microseconds)


@given(st.permutations(["", "1772442060.000001", "1772442060.000002", "999999999.000000"]))
def test_the_newest_edit_stays_whatever_the_order(edits: list[str]) -> None:
    versions = [incoming(f"edit {edit}", edit) for edit in edits]
    changes = resolve(versions, {}, set(), NOBODY)
    assert list(changes.texts.values()) == ["edit 1772442060.000002"]
    assert changes.fates[0] is Fate.IMPORTED


def test_two_copies_that_lead_back_to_what_is_stored_write_nothing() -> None:
    stored = version_of(incoming("with preview"), NOBODY)
    copies = [incoming("without"), incoming("with preview")]
    changes = resolve(copies, {stored.message_id: stored}, set(), NOBODY)
    assert changes.written == {}
    assert changes.fates == [Fate.UNCHANGED, Fate.UNCHANGED]


def test_a_deleted_message_is_not_written() -> None:
    message = incoming("back again")
    changes = resolve([message], {}, {message.message_id}, NOBODY)
    assert (changes.written, changes.fates) == ({}, [Fate.DELETED_BEFORE])


@pytest.mark.parametrize(
    ("people", "kept"),
    [
        ({}, "Ada"),
        ({"U1": Person("U1", "Ada")}, ""),
        ({"U1": Person("U1", "Other")}, "Ada"),
        ({"U1": Person("U9", "Ada")}, "Ada"),
    ],
)
def test_a_name_is_kept_only_where_the_directory_says_another(
    people: dict[str, Person], kept: str
) -> None:
    assert version_of(incoming("x"), Directory(people)).author_name == kept


def test_equal_chunks_stay_and_others_are_replaced(encoder: O200kEncoder) -> None:
    root = b.message("root", 0)
    reply = b.message("reply", 1, thread_root_id=root.message_id)
    before = thread_rows(group_by_thread([root, reply]), Source.SLACK, encoder)
    stored = {row.chunk.chunk_id: row.state for row in before}
    assert difference(before, stored) == difference([], {})
    edited = replace(reply, text="edited")
    after = thread_rows(group_by_thread([root, edited]), Source.SLACK, encoder)
    changed = difference(after, stored)
    assert sorted(row.chunk.kind for row in changed.new) == ["message", "thread"]
    assert sorted(changed.gone) == sorted(row.chunk.chunk_id for row in changed.new)


def test_a_chunk_whose_author_changed_is_written_again(encoder: O200kEncoder) -> None:
    message = b.message("same", 0)
    stored = {
        row.chunk.chunk_id: row.state
        for row in thread_rows(group_by_thread([message]), Source.SLACK, encoder)
    }
    other = replace(message, author_id="U2")
    rows = thread_rows(group_by_thread([other]), Source.SLACK, encoder)
    assert len(difference(rows, stored).new) == 1
