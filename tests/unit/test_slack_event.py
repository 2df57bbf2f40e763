"""What ingest understands of an event before it looks at any row."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.ingest.directory import ChannelKind, Directory
from services.ingest.records import Place
from services.ingest.slack_event import (
    EnvelopeError,
    channel_id_of,
    channel_kind_of,
    deleted_ts_of,
    ends_installation,
    event_of,
    event_ts_of,
    ids_only,
    needs_work,
    person_id_of,
    says_nothing_new,
    type_of,
)
from tests import builders as b
from tests import slack_events as s
from tests.integration.ingest_fixtures import data_folder

PLACE = Place(b.TEAM, b.GENERAL, "general", Directory())
ROOT = b.slack_record("see <https://ex.test/a>", 0)
PREVIEW = {"from_url": "https://ex.test/a", "title": "A page", "text": "about tides"}
ALERT = {"fallback": "Disk 91%", "fields": [{"title": "host", "value": "db-2"}]}
SAMPLES = sorted((data_folder() / "slack-api-samples" / "events").glob("*.json"))


@pytest.mark.parametrize(
    ("before", "after", "nothing"),
    [
        (ROOT, {**ROOT, "attachments": [PREVIEW]}, True),
        ({**ROOT, "attachments": [PREVIEW]}, ROOT, True),
        (ROOT, {**ROOT, "thread_ts": ROOT["ts"], "reply_count": 3}, True),
        (ROOT, {**ROOT, "text": "see", "edited": {"user": "U1", "ts": b.ts_of(60)}}, False),
        (ROOT, {**ROOT, "edited": {"user": "U1", "ts": b.ts_of(60)}}, False),
        (ROOT, {**ROOT, "text": "rewritten without a mark"}, False),
        ({**ROOT, "attachments": [ALERT]}, {**ROOT, "attachments": []}, False),
        (ROOT, {**ROOT, "files": [{"title": "plan.pdf"}]}, False),
        (ROOT, {**ROOT, "blocks": [{"type": "header", "text": {"text": "new"}}]}, False),
    ],
    ids=[
        "a preview came", "a preview went", "a reply was counted", "an edit", "an edit of nothing",
        "rewritten", "an alert's words went", "a file came", "a block came",
    ],
)  # fmt: skip
def test_only_words_and_edits_are_news(before: b.Record, after: b.Record, nothing: bool) -> None:
    assert says_nothing_new(s.changed(before, after, 60), PLACE) is nothing


def test_a_change_that_does_not_tell_what_was_before_may_be_news() -> None:
    event = s.changed(ROOT, ROOT, 60)
    assert not says_nothing_new({**event, "previous_message": None}, PLACE)
    assert not says_nothing_new(s.posted("hello"), PLACE)


@pytest.mark.parametrize(
    ("event", "kind"),
    [
        (s.posted(""), ChannelKind.PUBLIC),
        (s.posted("", channel_type="group"), ChannelKind.PRIVATE),
        (s.posted("", channel_type="mpim"), ChannelKind.GROUP_DIRECT),
        (s.posted("", channel_type="im"), ChannelKind.DIRECT),
        (s.posted("", channel_type="", channel="D1"), ChannelKind.DIRECT),
        (s.posted("", channel_type="app_home"), ChannelKind.PRIVATE),
        (s.posted("", channel_type=None), ChannelKind.PRIVATE),
        (s.member("joined", "U1", 1), ChannelKind.PUBLIC),
        ({**s.member("joined", "U1", 1), "channel_type": "G"}, ChannelKind.PRIVATE),
        (s.about_channel("channel_created", {"id": "C1"}), ChannelKind.PUBLIC),
        (s.about_channel("channel_created", {"id": "C1", "is_private": True}), ChannelKind.PRIVATE),
        (s.about_channel("group_rename", {"id": "C1"}), ChannelKind.PRIVATE),
        (s.about_channel("group_rename", {"id": "C1", "is_mpim": True}), ChannelKind.GROUP_DIRECT),
    ],
)
def test_a_channel_is_private_unless_something_says_that_it_is_not(
    event: b.Record, kind: ChannelKind
) -> None:
    assert channel_kind_of(event) is kind


@pytest.mark.parametrize("change", ["rename", "archive", "unarchive", "deleted", "left"])
def test_events_of_private_channels_are_those_of_channels(change: str) -> None:
    assert type_of({"type": f"group_{change}"}) == f"channel_{change}"
    assert needs_work(s.about_channel(f"group_{change}"))


def test_ids_are_told_by_themselves_or_inside_objects() -> None:
    assert channel_id_of({"channel": {"id": "C1"}}) == channel_id_of({"channel": "C1"}) == "C1"
    assert person_id_of({"user": {"id": "U1"}}) == person_id_of({"user": "U1"}) == "U1"
    assert channel_id_of({}) == person_id_of({"user": None}) == ""


def test_the_ids_of_an_event_hold_no_words() -> None:
    after = s.edited("a secret", 0, 60, blocks=[{"type": "header", "text": {"text": "secret"}}])
    kept = ids_only(s.changed(ROOT, after, 60))
    assert kept == {
        "type": "message",
        "subtype": "message_changed",
        "channel": b.GENERAL,
        "channel_type": "channel",
        "ts": b.ts_of(0),
        "event_ts": b.ts_of(60),
    }


def test_the_ids_of_a_deletion_are_enough_to_delete() -> None:
    for event in (s.deleted(0), s.changed(ROOT, s.tombstone(0), 900)):
        assert deleted_ts_of(ids_only(event)) == b.ts_of(0)
        assert channel_id_of(ids_only(event)) == b.GENERAL


def test_only_the_bot_s_token_ends_an_installation() -> None:
    assert ends_installation({"type": "app_uninstalled"})
    assert ends_installation({"type": "tokens_revoked", "tokens": {"bot": ["U1"]}})
    assert not ends_installation({"type": "tokens_revoked", "tokens": {"oauth": ["U1"], "bot": []}})
    assert not ends_installation({"type": "tokens_revoked"})


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_every_sample_of_slack_s_own_is_understood_or_left_alone(path: Path) -> None:
    event = json.loads(path.read_text("utf-8")).get("event")
    if not event:
        with pytest.raises(EnvelopeError):
            event_of(path.read_bytes())
        return
    assert event_of(path.read_bytes())["type"] == event["type"]
    assert isinstance(needs_work(event), bool)
    assert ids_only(event)["type"] == event["type"]


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(
            ["type", "subtype", "channel", "user", "ts", "id", "message", "previous_message",
             "deleted_ts", "text", "tokens", "bot", "edited", "attachments", "event_ts"]
        ),
        inner,
        max_size=5,
    ),
    max_leaves=15,
)  # fmt: skip


@given(event=st.dictionaries(st.text(max_size=12), _JSON), kind=st.sampled_from(["message", "x"]))
def test_no_event_of_any_shape_raises(event: b.Record, kind: str) -> None:
    given_event = {**event, "type": kind}
    for look in (needs_work, ids_only, ends_installation, channel_kind_of, event_ts_of):
        look(given_event)
    says_nothing_new({**given_event, "subtype": "message_changed"}, PLACE)
