"""Records: every shape is a message, a deletion or a named reason, and none raises."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.corpus import Source
from services.ingest.directory import (
    Channel,
    ChannelKind,
    Person,
    make_directory,
)
from services.ingest.records import (
    DeletedMessage,
    IncomingMessage,
    Place,
    Reading,
    Skipped,
    SkipReason,
    decode_json,
    read_slack_message,
    read_slack_record,
)
from services.ingest.timestamps import exact_ts, instant_of

DIRECTORY = make_directory(
    [Person("U1", "Ana", team_id="T1"), Person("U2", "Helper", is_bot=True, bot_id="B2")],
    [Channel("C1", "ops", ChannelKind.PUBLIC)],
)
PLACE = Place("T1", "C1", "ops", DIRECTORY)
TS = "1439022979.000389"


def read(**record: Any) -> Reading:
    return read_slack_message({"type": "message", "ts": TS} | record, PLACE)


def message(**record: Any) -> IncomingMessage:
    reading = read(**record)
    assert isinstance(reading, IncomingMessage), reading
    return reading


# Identity and time


def test_a_message_carries_its_ids_text_and_exact_instant() -> None:
    assert message(user="U1", text="hello <@U1>") == IncomingMessage(
        message_id="slack:T1:C1:1439022979.000389",
        source=Source.SLACK,
        channel_id="C1",
        channel_name="ops",
        author_id="U1",
        author_name="Ana",
        posted_at=datetime(2015, 8, 8, 8, 36, 19, 389, tzinfo=UTC),
        text="hello @Ana",
        thread_root_id="slack:T1:C1:1439022979.000389",
        ts=TS,
        thread_root_ts=TS,
    )


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("1439022979.000389", "1439022979.000389"),
        ("1700000000.000100", "1700000000.000100"),
        ("1700000000.0001", "1700000000.000100"),
        ("1700000000", "1700000000.000000"),
        (1700000000, "1700000000.000000"),
        (" 3.5 ", "3.500000"),
        ("0001700000000.000100", None),
        ("01700000000.000100", "1700000000.000100"),
        ("007.000100", "7.000100"),
        ("0.000100", "0.000100"),
        ("1608710400.1234567", None),
        (1439022979.000389, None),
        (True, None),
        (None, None),
        ("", None),
        ("soon", None),
        ("-1.000000", None),
        ("1e9", None),
        ("1700000000000", None),
        ("999999999999.000000", None),
        ("١٧٠٠٠٠٠٠٠٠.000000", None),
        ({}, None),
    ],
)
def test_a_ts_is_text_with_six_decimals_and_never_a_float(value: object, expected: str) -> None:
    assert exact_ts(value) == expected


@given(st.integers(0, 253_402_300_798), st.integers(0, 999_999))
def test_a_ts_keeps_every_microsecond(seconds: int, microseconds: int) -> None:
    instant = instant_of(f"{seconds}.{microseconds:06}")
    since_epoch = instant - datetime(1970, 1, 1, tzinfo=UTC)
    assert since_epoch.days * 86_400 + since_epoch.seconds == seconds
    assert since_epoch.microseconds == microseconds


def test_a_ts_written_as_a_json_number_keeps_its_digits() -> None:
    raw = b'{"type":"message","user":"U1","text":"x","ts":1439022979.000389}'
    reading = read_slack_record(raw, PLACE)
    assert isinstance(reading, IncomingMessage)
    assert reading.ts == TS


def test_messages_of_one_second_keep_their_order() -> None:
    first, second = (message(ts=f"1700000000.000{n}00", text="x") for n in (1, 2))
    assert first.posted_at < second.posted_at
    assert first.message_id != second.message_id


def test_the_id_holds_the_team_of_the_workspace_and_not_of_the_guest() -> None:
    guest = message(
        user="U0EXT",
        text="hi",
        team="T0OTHER",
        user_team="T0OTHER",
        source_team="T0OTHER",
        user_profile={"display_name": "Gus", "team": "T0OTHER"},
    )
    assert guest.message_id.startswith("slack:T1:")
    assert (guest.author_id, guest.author_name, guest.author_team_id) == ("U0EXT", "Gus", "T0OTHER")


def test_an_edit_is_known_by_its_own_instant() -> None:
    edited = message(user="U1", text="new", edited={"user": "U1", "ts": "1439022980.000000"})
    assert edited.edited_ts == "1439022980.000000"
    assert edited.edited_at == datetime(2015, 8, 8, 8, 36, 20, tzinfo=UTC)
    assert edited.content_sha256 != message(user="U1", text="new").content_sha256


@pytest.mark.parametrize("edited", [None, "", "yesterday", {}, {"ts": ""}, {"ts": 1.5}, []])
def test_an_odd_edit_mark_is_no_edit(edited: object) -> None:
    assert message(text="x", edited=edited).edited_at is None


# Threads


def test_a_reply_belongs_to_its_root() -> None:
    reply = message(text="r", thread_ts="1439022970.000100", parent_user_id="U1")
    assert reply.thread_root_ts == "1439022970.000100"
    assert reply.thread_root_id == "slack:T1:C1:1439022970.000100"


def test_a_broadcast_reply_is_one_message_of_its_thread_without_the_root_copy() -> None:
    broadcast = message(
        subtype="thread_broadcast",
        text="also to the channel",
        ts="3",
        thread_ts="1",
        root={"ts": "1", "thread_ts": "1", "text": "the root"},
    )
    assert broadcast.message_id == "slack:T1:C1:3.000000"
    assert broadcast.thread_root_id == "slack:T1:C1:1.000000"
    assert broadcast.text == "also to the channel"


@pytest.mark.parametrize("thread_ts", [None, "", "odd", 1.5, []])
def test_a_message_with_an_odd_thread_is_its_own_root(thread_ts: object) -> None:
    assert message(text="x", thread_ts=thread_ts).thread_root_ts == TS


# Authors


@pytest.mark.parametrize(
    ("record", "author"),
    [
        ({"user": "U1"}, ("U1", "Ana", False)),
        ({"user": "U1", "username": "ana-old"}, ("U1", "Ana", False)),
        ({"user": "U1", "bot_id": "B9"}, ("U1", "Ana", False)),
        ({"user": "U1", "bot_id": None}, ("U1", "Ana", False)),
        ({"user": "U2", "bot_id": "B2"}, ("U2", "Helper", True)),
        ({"subtype": "bot_message", "bot_id": "B2"}, ("B2", "Helper", True)),
        ({"subtype": "bot_message", "bot_id": "B2", "username": "CI"}, ("B2", "CI", True)),
        ({"subtype": "bot_message", "username": "CI"}, ("CI", "CI", True)),
        ({"subtype": "bot_message"}, ("", "", True)),
        ({"bot_id": "B9", "bot_profile": {"name": "Pager"}}, ("B9", "Pager", True)),
        ({"user": "U8", "bot_id": "B9", "bot_profile": {"name": "Pager"}}, ("U8", "Pager", True)),
        ({"bot_profile": {"id": "B7", "name": "Pager"}}, ("B7", "Pager", True)),
        ({"user": "USLACKBOT"}, ("USLACKBOT", "Slackbot", True)),
        ({"user": "U0GONE"}, ("U0GONE", "", False)),
        (
            {"user": "U9", "user_profile": {"display_name": "", "real_name": "Zo"}},
            ("U9", "Zo", False),
        ),
        ({"user": {"id": "U9", "name": "zoe"}}, ("U9", "zoe", False)),
        ({"user": {"id": "U9", "profile": {"real_name": "Zoe"}}}, ("U9", "Zoe", False)),
        ({"user": 77}, ("77", "", False)),
        ({"user": None}, ("", "", False)),
        ({"username": "<@U1|ana>"}, ("Ana", "Ana", False)),
        ({"username": "na\0me\ud800"}, ("name?", "name?", False)),
        ({}, ("", "", False)),
    ],
)
def test_the_author_is_found_in_every_shape(
    record: dict[str, Any], author: tuple[str, str, bool]
) -> None:
    found = message(text="words", **record)
    assert (found.author_id, found.author_name, found.is_bot) == author


@pytest.mark.parametrize(
    "row",
    [
        {"comment": {"user": "U1", "comment": "looks fine"}},
        {
            "comment": {"id": "Fc1", "user": "U1", "comment": "looks fine"},
            "text": "<@U1> commented on <@U2>'s file <https://s.test/p.png|p.png>: looks fine",
            "is_intro": True,
        },
    ],
)
def test_a_file_comment_has_the_author_and_the_words_of_the_comment(row: dict[str, Any]) -> None:
    comment = message(subtype="file_comment", **row)
    assert (comment.author_id, comment.author_name, comment.text) == ("U1", "Ana", "looks fine")


def test_a_file_comment_names_the_file() -> None:
    row = {"comment": {"user": "U1", "comment": "looks fine"}, "file": {"title": "p.png"}}
    assert message(subtype="file_comment", **row).text == "looks fine\nFile: p.png"


@pytest.mark.parametrize(
    "record",
    [
        {"subtype": "bot_message", "text": "build"},
        {"user": "U2", "text": "build"},
        {"user": "USLACKBOT", "text": "build"},
    ],
)
def test_bot_messages_are_left_out_where_they_are_switched_off(record: dict[str, Any]) -> None:
    place = Place("T1", "C1", "ops", DIRECTORY, index_bots=False)
    reading = read_slack_message({"ts": TS} | record, place)
    assert isinstance(reading, Skipped)
    assert reading.reason is SkipReason.BOT_SWITCHED_OFF
    assert message(**record).is_bot


def test_an_answer_of_recalls_own_is_no_evidence_for_the_next_one() -> None:
    place = Place("T1", "C1", "ops", DIRECTORY)
    answer = {"ts": TS, "bot_id": "B1", "user": "U2", "text": "It is Tuesday."}
    marked = answer | {"metadata": {"event_type": "recall_delivery"}}
    reading = read_slack_message(marked, place)
    assert isinstance(reading, Skipped)
    assert reading.reason is SkipReason.OWN_ANSWER
    assert message(**answer | {"metadata": {"event_type": "deploy"}}).is_bot


# Shapes


@pytest.mark.parametrize(
    ("record", "text"),
    [
        ({"text": "plain"}, "plain"),
        ({"subtype": "me_message", "text": "waves"}, "waves"),
        ({"subtype": "", "text": "blank subtype"}, "blank subtype"),
        ({"subtype": "unheard_of", "text": "words"}, "words"),
        ({"text": 42}, "42"),
        ({"type": None, "text": "no type"}, "no type"),
        ({"text": "hi", "files": [{"id": "F1", "mode": "tombstone"}]}, "hi"),
        ({"text": "hi", "files": [{"id": "F2", "mode": "hidden_by_limit"}]}, "hi"),
        ({"text": "hi", "files": [{"id": "F3", "file_access": "check_file_info"}]}, "hi"),
        ({"text": "", "files": [{"id": "F4", "title": "plan"}]}, "File: plan"),
        ({"subtype": "file_share", "text": "", "file": {"name": "a.txt"}}, "File: a.txt"),
        ({"subtype": "message_changed", "message": {"ts": TS, "text": "new text"}}, "new text"),
        ({"text": "This message was deleted.", "user": "U1"}, "This message was deleted."),
        (
            {
                "subtype": "bot_message",
                "text": "",
                "attachments": [{"fallback": "Disk 91% on db-2"}],
            },
            "Disk 91% on db-2",
        ),
    ],
)
def test_every_shape_of_message_is_read(record: dict[str, Any], text: str) -> None:
    assert message(**record).text == text


def test_stubs_of_files_are_counted() -> None:
    stubs = [{"mode": "tombstone"}, {"mode": "hidden_by_limit"}, {"title": "kept"}]
    assert message(text="hi", files=stubs).file_stubs == 2


@pytest.mark.parametrize(
    "record",
    [
        {"subtype": "tombstone", "user": "USLACKBOT", "text": "This message was deleted."},
        {"user": "USLACKBOT", "hidden": True, "text": "This message was deleted."},
        {"user": "USLACKBOT", "text": "This message was deleted."},
        {"hidden": True, "text": "This message was deleted."},
        {"subtype": "tombstone"},
        {"subtype": "tombstone", "thread_ts": TS, "reply_count": 2, "hidden": True},
        {"subtype": "message_deleted", "ts": "9.000000", "deleted_ts": TS},
        {"subtype": "message_deleted", "ts": "9.000000", "previous_message": {"ts": TS}},
        {
            "subtype": "message_changed",
            "ts": "9.000000",
            "message": {"subtype": "tombstone", "user": "USLACKBOT", "ts": TS, "thread_ts": TS},
        },
    ],
)
def test_every_shape_of_a_deletion_names_the_message_that_is_gone(record: dict[str, Any]) -> None:
    assert read(**record) == DeletedMessage("slack:T1:C1:" + TS, "C1", TS)


@pytest.mark.parametrize(
    "subtype",
    [
        "channel_join",
        "channel_leave",
        "channel_topic",
        "channel_purpose",
        "channel_name",
        "channel_archive",
        "channel_unarchive",
        "channel_convert_to_private",
        "channel_posting_permissions",
        "group_join",
        "group_topic",
        "group_name",
        "pinned_item",
        "unpinned_item",
        "bot_add",
        "bot_remove",
        "reminder_add",
        "ekm_access_denied",
        "huddle_thread",
        "sh_room_created",
        "tabbed_canvas_updated",
        "joiner_notification",
    ],
)
def test_notices_are_not_indexed(subtype: str) -> None:
    assert read(subtype=subtype, user="U1", text="<@U1> did it") == Skipped(
        SkipReason.NOTICE, subtype, TS
    )


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (None, SkipReason.NOT_A_MESSAGE),
        ("text", SkipReason.NOT_A_MESSAGE),
        ([], SkipReason.NOT_A_MESSAGE),
        (7, SkipReason.NOT_A_MESSAGE),
        ({"type": "channel_join", "ts": TS}, SkipReason.NOT_A_MESSAGE),
        ({"type": "message", "text": "x"}, SkipReason.NO_TIMESTAMP),
        ({"text": "x", "ts": ""}, SkipReason.NO_TIMESTAMP),
        ({"text": "x", "ts": None}, SkipReason.NO_TIMESTAMP),
        ({}, SkipReason.NO_TIMESTAMP),
        ({"text": "x", "ts": "soon"}, SkipReason.BAD_TIMESTAMP),
        ({"text": "x", "ts": 1439022979.000389}, SkipReason.BAD_TIMESTAMP),
        ({"text": "x", "ts": ["1"]}, SkipReason.BAD_TIMESTAMP),
        ({"subtype": "message_deleted", "ts": TS}, SkipReason.NO_TIMESTAMP),
        ({"subtype": "message_changed", "ts": TS}, SkipReason.NO_TIMESTAMP),
        ({"subtype": "message_replied", "ts": TS, "message": {"ts": TS}}, SkipReason.REPLY_COPY),
        ({"subtype": "reply_broadcast", "ts": TS, "text": "x"}, SkipReason.REPLY_COPY),
        ({"ts": TS}, SkipReason.NO_TEXT),
        ({"ts": TS, "text": " \n"}, SkipReason.NO_TEXT),
        ({"ts": TS, "text": None, "files": [{"mode": "tombstone"}]}, SkipReason.NO_TEXT),
        ({"ts": TS, "text": "\0"}, SkipReason.NO_TEXT),
    ],
)
def test_what_is_left_out_has_a_reason(record: object, reason: SkipReason) -> None:
    reading = read_slack_message(record, PLACE)
    assert isinstance(reading, Skipped)
    assert reading.reason is reason


def test_a_nul_in_one_of_fifty_messages_costs_none() -> None:
    texts = [f"message {number}" for number in range(50)]
    texts[17] = "a\0b"
    readings = [message(ts=f"{number}.000000", text=text) for number, text in enumerate(texts)]
    assert readings[17].text == "ab"
    assert [reading.text for reading in readings if reading.ts != "17.000000"] == (
        texts[:17] + texts[18:]
    )


# JSON


@pytest.mark.parametrize("raw", [b"", b"{", b"nonsense", b"[" * 100_000, b'{"a":1}{"b":2}'])
def test_a_record_that_is_no_json_is_named(raw: bytes) -> None:
    reading = read_slack_record(raw, PLACE)
    assert isinstance(reading, Skipped)
    assert reading.reason is SkipReason.NOT_JSON


def test_one_bad_byte_costs_one_character() -> None:
    reading = read_slack_record(b'\xef\xbb\xbf{"ts":"1.000000","text":"caf\xe9 ok"}', PLACE)
    assert isinstance(reading, IncomingMessage)
    assert reading.text == "caf\ufffd ok"


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b"1.50", "1.50"),
        (b"12", 12),
        (b"NaN", "NaN"),
        (b"-Infinity", "-Infinity"),
        (b"1" * 10_000, "1" * 10_000),
        (b'{"a":[1e400]}', {"a": ["1e400"]}),
    ],
)
def test_no_number_passes_through_a_float(raw: bytes, expected: object) -> None:
    assert decode_json(raw) == expected


_KEYS = """
type subtype ts thread_ts text user bot_id username hidden root user_profile bot_profile comment
edited message previous_message name blocks attachments message_blocks elements fields rows files
file title title_link style indent
"""
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(_KEYS.split()),
            inner,
            max_size=6,
        )
    ),
    max_leaves=30,
)


@given(_JSON)
def test_no_value_raises(value: object) -> None:
    assert isinstance(read_slack_message(value, PLACE), IncomingMessage | DeletedMessage | Skipped)


@given(st.dictionaries(st.sampled_from(["text", "user", "blocks", "attachments"]), _JSON))
def test_whatever_is_read_can_be_stored(fields: dict[str, object]) -> None:
    reading = read_slack_message(fields | {"ts": TS}, PLACE)
    if isinstance(reading, IncomingMessage):
        for text in (reading.text, reading.author_id, reading.author_name, reading.message_id):
            assert "\0" not in text
            text.encode("utf-8")


@pytest.mark.parametrize("key", ["blocks", "attachments", "message", "root", "elements"])
def test_a_record_nested_beyond_reason_does_not_raise(key: str) -> None:
    value: Any = {"type": "section", "text": "deep"}
    for _ in range(900):
        value = {"type": "section", key: [value], "attachments": [value]}
    assert isinstance(read(text="top", **{key: [value]}), IncomingMessage)
