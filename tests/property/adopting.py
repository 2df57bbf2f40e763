"""What a run of history changed, taken into the account if Slack really showed it."""

from __future__ import annotations

from collections.abc import Iterator, Set

from tests.integration.ingest_fixtures import Rows
from tests.property.model import NOTHING, Expected
from tests.property.slack_pages import Pages
from tests.property.slack_world import Version, World

_MESSAGES = (
    "SELECT channel_id, ts, split_part(text, E'\\n', 1), edited_ts, author_id FROM messages "
    "WHERE workspace_id = %s"
)
_TOMBSTONES = "SELECT message_id FROM tombstones WHERE workspace_id = %s"

# Channel, ts, text and edited ts of rows on pages.
Shown = Set[tuple[str, str, str, str]]


def stored_versions(rows: Rows, workspace_id: str) -> dict[tuple[str, str], Version]:
    """What is stored, by channel and ts; of a text its first line, the author's own."""
    return {
        (channel_id, ts): Version(text, author_id, edited_ts)
        for channel_id, ts, text, edited_ts, author_id in rows.all(_MESSAGES, workspace_id)
    }


def readable(version: Version) -> Version:
    """A version as it is stored: links without their brackets."""
    text = version.text.replace("<", "").replace(">", "")
    return Version(text, version.author_id, version.edited_ts)


def adopt_history(expected: Expected, world: World, pages: Pages, rows: Rows) -> None:
    """Which versions history may store depends on when it reads: so it is looked at, and judged.

    A message may come, or change, only as a page of this run showed it, and only forwards; it may
    go only if it is deleted in Slack, or has no words there.
    """
    shown = {
        (channel_id, row["ts"], row["text"], row.get("edited", {}).get("ts", ""))
        for team_id, channel_id, row in pages.shown
        if team_id == expected.team_id
    }
    pages.shown.clear()
    _adopt_deletions(expected, world, rows)
    stored = stored_versions(rows, expected.team_id)
    known = {(c, ts) for c, channel in expected.channels.items() for ts in channel.messages}
    for key in stored.keys() | known:
        _adopt(expected, key, stored.get(key), {row for row in shown if row[:2] == key})


def _adopt_deletions(expected: Expected, world: World, rows: Rows) -> None:
    for (message_id,) in rows.all(_TOMBSTONES, expected.team_id):
        channel_id, ts = message_id.split(":")[2:]
        if (channel_id, ts) not in expected.deleted:
            posted = world.channel(expected.team_id, channel_id).messages[ts]
            assert posted.is_deleted, f"history took away {message_id}, which Slack still has"
            expected.gone_from_slack(channel_id, ts)


def _adopt(expected: Expected, key: tuple[str, str], found: Version | None, shown: Shown) -> None:
    channel_id, ts = key
    channel = expected.channel(channel_id)
    states = channel.messages.get(ts, NOTHING)
    fitting = frozenset(state for state in states if _fits(state, found))
    if not fitting:
        newest = max((state.edited_ts for state in states if state), default="")
        fitting = frozenset(_from_page(key, found, newest, shown))
        assert found is None or key not in expected.deleted, f"history brought back {key}"
        assert found is None or ts > channel.held_ts, f"history undid the purge of {key}"
        assert fitting, f"history made {states} of {key} into {found}, which no page showed"
    channel.messages[ts] = fitting


def _from_page(
    key: tuple[str, str], found: Version | None, newest: str, shown: Shown
) -> Iterator[Version]:
    """The versions on pages that explain what is stored, none older than what was."""
    for _, _, text, edited_ts in shown:
        version = Version(text, found.author_id if found else "", edited_ts)
        if edited_ts >= newest and _fits(version, found):
            yield version


def _fits(state: Version | None, found: Version | None) -> bool:
    if state is None or not state.text:
        return found is None
    return found == readable(state)
