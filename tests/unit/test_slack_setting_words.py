"""What is typed to change a setting."""

from __future__ import annotations

import pytest

from recall.ingest.v1 import slack_pb2
from services.gateway.slack.setting_words import names_a_setting, read_change, setting_lines

Settings = slack_pb2.Settings


@pytest.mark.parametrize(
    ("typed", "wanted"),
    [
        ("retention 90", Settings(retention_days=90)),
        ("Retention 90 days", Settings(retention_days=90)),
        ("retention default", Settings(retention_days=0)),
        ("bots off", Settings(index_bots=False)),
        ("bots ON", Settings(index_bots=True)),
        ("bots default", Settings(index_bots=True)),
        ("history-interval 1.5 seconds", Settings(history_interval_seconds=1.5)),
        ("history-interval default", Settings(history_interval_seconds=0)),
        ("history-page-size 200", Settings(history_page_size=200)),
    ],
)
def test_a_change_is_read(typed: str, wanted: slack_pb2.Settings) -> None:
    assert names_a_setting(typed)
    assert read_change(typed) == wanted


@pytest.mark.parametrize(
    "typed",
    [
        "retention", "retention forever", "retention 0", "retention -3", "retention 1.5",
        "retention 99999999", "retention \u0663", "bots maybe", "bots 1", "history-interval 0",
        "history-page-size 1e3", "history-page-size 2.5", "history-interval .", "retention nan",
    ],
)  # fmt: skip
def test_a_value_that_a_setting_does_not_take_changes_nothing(typed: str) -> None:
    assert read_change(typed) is None


@pytest.mark.parametrize("typed", ["", "of the router?", "retention of the old router"])
def test_other_words_are_no_setting(typed: str) -> None:
    assert not names_a_setting(typed)


def test_settings_read_as_sentences_of_their_defaults_too() -> None:
    usual = setting_lines(Settings())
    assert usual == ["*Messages are kept for:* no limit", "*Messages of bots:* read"]
    own = Settings(
        retention_days=30, index_bots=False, history_interval_seconds=1.2, history_page_size=200
    )
    assert [line.rpartition("* ")[2] for line in setting_lines(own)] == [
        "30 days", "left out", "1.2", "200"
    ]  # fmt: skip
