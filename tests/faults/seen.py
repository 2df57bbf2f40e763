"""What people see in Slack, and which of it answers whom."""

from __future__ import annotations

from collections import Counter

from services.gateway.slack.edge import LOOKING, NOT_INSTALLED, TRY_AGAIN
from tests.fakes.slack_server.messages import SLACKBOT
from tests.fakes.slack_server.state import Message
from tests.faults.load import Load
from tests.faults.stage import Stage

_AT_ONCE = (LOOKING, TRY_AGAIN, NOT_INSTALLED)


def answers_by_person(stage: Stage) -> Counter[str]:
    """How many answers each person sees, without the line that says one is coming."""
    slack = stage.control.world.slack
    seen = Counter(entry.user for entry in slack.ephemerals if _is_answer(entry.message))
    for channel in slack.channels.values():
        if channel.kind == "im":
            (person,) = (member for member in channel.members if member != stage.bot_id)
            posts = (m for m in channel.messages.values() if m.user == stage.bot_id)
            seen[person] += sum(1 for _ in posts)
    return seen


def texts_that_stand(stage: Stage) -> dict[tuple[str, str], str]:
    """The people's messages in channels, by channel and ts."""
    return {
        (channel.channel_id, ts): message.text
        for channel in stage.control.world.slack.channels.values()
        if channel.kind != "im"
        for ts, message in channel.messages.items()
        if message.subtype != "tombstone" and message.user != stage.bot_id
    }


def words_that_are_gone(load: Load, standing: dict[tuple[str, str], str]) -> set[str]:
    """Words of deleted messages and of versions that an edit replaced."""
    gone: set[str] = set()
    for key, words in load.words.items():
        text = standing.get(key, "")
        gone |= {word for word in words if word not in text}
    return gone


def _is_answer(message: Message) -> bool:
    return message.user != SLACKBOT and message.text not in _AT_ONCE
