"""Loading Beacon into the Slack for tests gives the same workspace in every run."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path

import pytest

from tests.fakes.slack_server.messages import top_level
from tests.fakes.slack_server.rendering import replies_of
from tests.fakes.slack_server.state import Channel, ControlError, Slack, Team
from tests.fakes.slack_server.workspace_files import load_workspace

BEACON = Path(__file__).parents[2] / "evals" / "beacon"


def load() -> tuple[Slack, dict[str, str]]:
    slack, team = Slack(), Team("T1", "Beacon", "beacon")
    slack.teams[team.team_id] = team
    return slack, load_workspace(slack, team, BEACON, bot_user_id="UBOT")


def channel_named(slack: Slack, name: str) -> Channel:
    return next(channel for channel in slack.channels.values() if channel.name == name)


def test_every_message_stands_at_its_second_in_its_thread() -> None:
    slack, ids = load()

    for line in map(json.loads, (BEACON / "messages.jsonl").read_text("utf-8").splitlines()):
        channel = channel_named(slack, line["channel"])
        message = channel.messages[ids[f"{line['channel']}:{line['id']}"]]
        root = ids[f"{line['channel']}:{line['root']}"]
        posted = int(datetime.fromisoformat(line["posted_at"]).timestamp())
        assert int(message.ts[:10]) == posted
        assert message.thread_ts == ("" if root == message.ts else root)
        assert slack.users[message.user].name == line["author"]


def test_ids_and_timestamps_are_the_same_in_every_run() -> None:
    assert load()[1] == load()[1]


def test_the_bot_is_in_the_public_channels_alone() -> None:
    slack, _ = load()

    with_bot = {c.name for c in slack.channels.values() if "UBOT" in c.members}

    assert with_bot == {c.name for c in slack.channels.values() if not c.is_private}
    assert len(with_bot) == 5


def test_text_is_stored_as_slack_stores_it() -> None:
    slack, _ = load()
    texts = [m.text for c in slack.channels.values() for m in c.messages.values()]

    assert any(text.startswith("&gt; ") or "\n&gt; " in text for text in texts)
    assert not any("\n> " in text for text in texts)


def test_top_level_messages_and_replies_are_all_there_is() -> None:
    slack, _ = load()

    for channel in slack.channels.values():
        roots = top_level(channel)
        replies = sum(len(replies_of(channel, root.ts)) for root in roots)
        assert len(roots) + replies == len(channel.messages)


def test_a_folder_without_the_files_is_named(tmp_path: Path) -> None:
    with pytest.raises(ControlError, match=r"people\.json is missing"):
        load_workspace(Slack(), Team("T1", "Beacon", "beacon"), tmp_path)
