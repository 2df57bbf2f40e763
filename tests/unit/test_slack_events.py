"""What a delivery of Slack is."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recall.ingest.v1 import slack_pb2
from services.gateway.slack.events import (
    Challenge,
    Ignored,
    UnreadableError,
    read_envelope,
    read_events_body,
    read_interaction,
    read_slash_command,
    without_mention,
)

DOORS = slack_pb2.CommandDoor
BOT = "U0BOT"


def envelope(event: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {
        "type": "event_callback",
        "team_id": "T1",
        "event_id": "Ev1",
        "event": event,
        "authorizations": [{"user_id": BOT, "team_id": "T1"}],
        **fields,
    }


def read(event: dict[str, Any], **fields: Any) -> Any:
    given = envelope(event, **fields)
    return read_envelope(given, json.dumps(given).encode())


def message(**fields: Any) -> dict[str, Any]:
    given = {"type": "message", "user": "U1", "text": "hi", "ts": "1.1", "channel": "C1"}
    return given | {"channel_type": "channel"} | fields


@pytest.mark.parametrize(
    "event",
    [
        message(),
        message(subtype="message_deleted", deleted_ts="1.0"),
        message(text=f"<@{BOT}> hello"),
        message(channel_type="mpim", channel="G1"),
        {"type": "channel_rename", "channel": {"id": "C1", "name": "x"}},
        {"type": "app_uninstalled"},
    ],
)
def test_every_event_but_a_question_is_recorded_with_its_own_bytes(event: dict[str, Any]) -> None:
    found = read(event)
    assert isinstance(found, slack_pb2.RecordEventRequest)
    assert (found.team_id, found.event_id) == ("T1", "Ev1")
    assert json.loads(found.envelope_json)["event"] == event


def test_a_mention_is_a_command_without_the_mention() -> None:
    found = read(message(type="app_mention", text=f"<@{BOT}> why <@U2>?", thread_ts="1.0"))
    assert isinstance(found, slack_pb2.RecordCommandRequest)
    assert found.dedup_key == "Ev1"
    assert found.command == slack_pb2.SlackCommand(
        door=DOORS.COMMAND_DOOR_MENTION,
        text="why <@U2>?",
        user_id="U1",
        channel_id="C1",
        thread_ts="1.0",
        message_ts="1.1",
    )


def test_a_mention_at_the_root_is_not_in_a_thread() -> None:
    assert read(message(type="app_mention", thread_ts="1.1")).command.thread_ts == ""


def test_a_direct_message_is_a_command() -> None:
    found = read(message(channel="D1", channel_type="im", text="why?"))
    assert found.command.door == DOORS.COMMAND_DOOR_DIRECT
    assert (found.command.text, found.command.channel_id) == ("why?", "D1")


@pytest.mark.parametrize(
    "event",
    [
        message(channel="D1", channel_type="im", bot_id="B1"),
        message(channel="D1", channel_type="im", subtype="message_changed"),
        message(channel="D1", channel_type="im", subtype="message_deleted"),
        message(channel="D1", channel_type="im", subtype="bot_message"),
        message(type="app_mention", bot_id="B1"),
        message(type="app_mention", channel="D1"),
    ],
)
def test_direct_messages_that_no_person_wrote_are_neither_asked_nor_stored(
    event: dict[str, Any],
) -> None:
    assert isinstance(read(event), Ignored)


def test_the_context_team_of_a_shared_channel_counts() -> None:
    found = read(message(), context_team_id="T2", context_enterprise_id="E2")
    assert (found.team_id, found.enterprise_id) == ("T2", "E2")


def test_the_challenge_is_answered_with_its_text() -> None:
    body = json.dumps({"type": "url_verification", "challenge": "abc"}).encode()
    assert read_events_body(body) == Challenge("abc")


def test_a_notice_about_the_rate_is_ignored() -> None:
    assert read_envelope({"type": "app_rate_limited"}, b"") == Ignored("app_rate_limited")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"x=1",
        b"[]",
        b"7",
        b'{"type": "event_callback"}',
        b"\xff",
        b"[" * 100_000,
        json.dumps(envelope({"type": "message"}, event_id="")).encode(),
    ],
)
def test_what_has_not_slacks_shape_is_unreadable(body: bytes) -> None:
    with pytest.raises(UnreadableError):
        read_events_body(body)


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)
NAMES = st.sampled_from(
    [
        "type",
        "event",
        "event_id",
        "user",
        "channel",
        "text",
        "actions",
        "view",
        "state",
        "values",
        "callback_id",
        "container",
        "team",
        "authorizations",
        "trigger_id",
        "thread_ts",
        "message",
    ]
)
KINDS = st.sampled_from(
    [
        "event_callback",
        "app_mention",
        "message",
        "block_actions",
        "message_action",
        "view_submission",
        "mark_corrected",
        "summarise_thread",
    ]
)


@given(st.dictionaries(NAMES, JSON_VALUES | KINDS | st.dictionaries(NAMES, KINDS | JSON_VALUES)))
def test_no_shape_of_json_breaks_the_reader(value: dict[str, Any]) -> None:
    with suppress(UnreadableError):
        read_envelope(value, b"")
    with suppress(UnreadableError):
        read_interaction(value)


def test_a_slash_command_keeps_its_words_and_where_to_answer() -> None:
    fields = {
        "team_id": "T1",
        "user_id": "U1",
        "channel_id": "C1",
        "text": "ask why",
        "trigger_id": "t.1",
        "response_url": "https://hooks/1",
    }
    found = read_slash_command(fields)
    assert isinstance(found, slack_pb2.RecordCommandRequest)
    assert (found.dedup_key, found.command.text) == ("t.1", "ask why")
    assert found.command.response_url == "https://hooks/1"
    with pytest.raises(UnreadableError):
        read_slash_command(fields | {"trigger_id": ""})


def interaction(kind: str, **fields: Any) -> dict[str, Any]:
    given = {"type": kind, "team": {"id": "T1"}, "user": {"id": "U1"}, "trigger_id": "t.2"}
    return given | {"enterprise": None} | fields


def test_a_pressed_button_carries_its_value() -> None:
    found = read_interaction(
        interaction(
            "block_actions",
            actions=[{"action_id": "ask_again", "value": "why?"}],
            container={"channel_id": "C1", "message_ts": "1.1", "thread_ts": "1.0"},
            response_url="https://hooks/2",
        )
    )
    assert isinstance(found, slack_pb2.RecordCommandRequest)
    assert found.dedup_key == "t.2"
    assert found.command == slack_pb2.SlackCommand(
        door=DOORS.COMMAND_DOOR_BUTTON,
        user_id="U1",
        channel_id="C1",
        message_ts="1.1",
        thread_ts="1.0",
        response_url="https://hooks/2",
        trigger_id="t.2",
        action_id="ask_again",
        value="why?",
    )


def test_a_message_shortcut_points_at_its_message() -> None:
    found = read_interaction(
        interaction(
            "message_action",
            callback_id="summarise_thread",
            message_ts="1.2",
            message={"thread_ts": "1.1"},
            channel={"id": "C1"},
        )
    )
    assert isinstance(found, slack_pb2.RecordCommandRequest)
    command = found.command
    assert (command.message_ts, command.thread_ts, command.channel_id) == ("1.2", "1.1", "C1")


def test_a_submitted_view_carries_its_fields() -> None:
    view = {
        "callback_id": "mark_corrected",
        "private_metadata": "C1:1.1",
        "state": {"values": {"b": {"link": {"type": "plain_text_input", "value": "https://x"}}}},
    }
    found = read_interaction(interaction("view_submission", view=view))
    assert isinstance(found, slack_pb2.RecordCommandRequest)
    assert dict(found.command.fields) == {"link": "https://x"}
    assert found.command.value == "C1:1.1"


@pytest.mark.parametrize(
    "payload",
    [
        interaction("block_actions", actions=[{"action_id": "open_link"}]),
        interaction("block_actions", actions=[]),
        interaction("message_action", callback_id="other"),
        interaction("view_closed"),
    ],
)
def test_other_interactions_are_ignored(payload: dict[str, Any]) -> None:
    assert isinstance(read_interaction(payload), Ignored)


@pytest.mark.parametrize(
    ("text", "bot", "left"),
    [
        (f"<@{BOT}> why", BOT, "why"),
        (f"so <@{BOT}|recall>: why <@U2>", BOT, "so : why <@U2>"),
        ("<@U9> why <@U2>", "", "why <@U2>"),
        ("why <@U2>", "", "why <@U2>"),
    ],
)
def test_only_the_apps_own_mention_is_taken_away(text: str, bot: str, left: str) -> None:
    assert without_mention(text, bot) == left
