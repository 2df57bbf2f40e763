"""Loads a workspace written as people.json, channels.json and messages.jsonl."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path

from tests.fakes.slack_server.identifiers import derived_id, ts_from_iso
from tests.fakes.slack_server.messages import Draft, post_message
from tests.fakes.slack_server.rich_text import escape
from tests.fakes.slack_server.state import Channel, ControlError, Json, Slack, Team, User


def load_workspace(
    slack: Slack,
    team: Team,
    folder: Path,
    *,
    bot_user_id: str = "",
    bot_in: Sequence[str] | None = None,
) -> dict[str, str]:
    """Add people, channels and messages; ``@Name`` becomes a mention. No event is sent.

    Returns the Slack id of each person and channel by name, and the ts of each message by
    ``<channel>:<id>``. Ids and ts are the same in every run.
    """
    people, channels, messages = _read(folder)
    first = min((_epoch(message["posted_at"]) for message in messages), default=0)
    ids: dict[str, str] = {}
    for person in people:
        user = _user(team, person, first)
        slack.users[user.user_id] = user
        ids[user.name] = user.user_id
    for described in channels:
        channel = _channel(team, described, ids, first)
        if bot_user_id and (channel.name in bot_in if bot_in else not channel.is_private):
            channel.members.append(bot_user_id)
        slack.channels[channel.channel_id] = channel
        ids[channel.name] = channel.channel_id
    return ids | _post_all(slack, team, messages, ids)


def _read(folder: Path) -> tuple[list[Json], list[Json], list[Json]]:
    try:
        people = json.loads((folder / "people.json").read_text("utf-8"))
        channels = json.loads((folder / "channels.json").read_text("utf-8"))
        lines = (folder / "messages.jsonl").read_text("utf-8").splitlines()
    except FileNotFoundError as missing:
        raise ControlError(
            f"{missing.filename} is missing; give a folder like evals/beacon."
        ) from None
    return people, channels, [json.loads(line) for line in lines if line.strip()]


def _epoch(moment: str) -> int:
    return int(datetime.fromisoformat(moment).timestamp())


def _user(team: Team, person: Json, updated: int) -> User:
    user = User(derived_id("U", team.team_id, person["name"]), team.team_id, person["name"])
    user.title, user.updated = person.get("title", ""), updated
    user.bot_id = derived_id("B", team.team_id, person["name"]) if person.get("bot") else ""
    return user


def _channel(team: Team, described: Json, ids: dict[str, str], created: int) -> Channel:
    name = described["name"]
    kind = "private_channel" if described.get("private") else "public_channel"
    channel = Channel(derived_id("C", team.team_id, name), team.team_id, name)
    channel.kind = kind  # type: ignore[assignment]
    channel.created, channel.purpose = created, described.get("purpose", "")
    channel.members = [ids[member] for member in described.get("members", [])]
    return channel


def _post_all(
    slack: Slack, team: Team, messages: list[Json], ids: dict[str, str]
) -> dict[str, str]:
    stamps: dict[str, str] = {}
    mention = _mentioner(ids)
    for line in messages:
        channel = slack.channels[ids[line["channel"]]]
        author = slack.users[ids[line["author"]]]
        ts = ts_from_iso(line["posted_at"], channel.messages)
        stamps[f"{line['channel']}:{line['id']}"] = ts
        root = stamps.get(f"{line['channel']}:{line['root']}", "")
        draft = Draft(
            author.user_id,
            mention(escape(line["text"])),
            thread="" if line["root"] == line["id"] else root,
            subtype="bot_message" if author.bot_id else "",
            bot_id=author.bot_id,
            username=author.name if author.bot_id else "",
            team=team.team_id,
        )
        post_message(channel, draft, ts)
    return stamps


def _mentioner(ids: dict[str, str]) -> Callable[[str], str]:
    """A function that puts ``<@U…>`` for ``@Name`` of the people among ``ids``."""
    people = {name: user_id for name, user_id in ids.items() if user_id.startswith("U")}
    if not people:
        return lambda text: text
    named = re.compile(r"@(" + "|".join(map(re.escape, people)) + r")\b")
    return lambda text: named.sub(lambda found: f"<@{people[found.group(1)]}>", text)
