"""What must hold after each step, and what must hold once the queue is empty."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import numpy as np

from services.corpus import Message, QueryContext, Source, content_sha256
from services.ingest.chunk_rows import ChunkRow, thread_rows
from services.ingest.threads import group_by_thread
from services.ingest.timestamps import instant_of
from services.retrieve.arms import Query, run_arms
from services.retrieve.fusion import Arm
from services.retrieve.lexical_query import lexical_query
from services.retrieve.resolve_pin import read_generation
from services.retrieve.scope import Scope
from services.runtime import db
from tests.property.adopting import readable, stored_versions
from tests.property.driver import Driver
from tests.property.hash_embedder import vector_of
from tests.property.model import Expected
from tests.property.slack_world import CHANNELS, TEAMS
from tests.property.system import context_of

# The word that one version of one message has.
_OWN_WORD = re.compile(r"w[0-9]+x")


def check_shown(expected: Expected, context: QueryContext, messages: Iterable[Message]) -> None:
    """Nothing deleted, nothing unreadable, no other words than the newest."""
    for message in messages:
        assert message.workspace_id == expected.team_id
        assert message.channel_id in context.channel_ids, f"{message.message_id} is unreadable"
        ts = message.message_id.rsplit(":", 1)[1]
        versions = expected.may_show(message.channel_id, ts)
        texts = {readable(version).text for version in versions}
        shown = message.text.split("\n")[0]
        assert shown in texts, f"{message.message_id} shows {shown!r}; may show {texts}"
        digest = content_sha256(message.text, message.author_id, message.edited_at)
        assert message.content_sha256 == digest


async def check_surface(
    driver: Driver, team_id: str, channels: Sequence[str], surface: int
) -> None:
    """One way to read, as a reader of some channels of a workspace; they take turns."""
    expected, system = driver.expected[team_id], driver.system
    context = context_of(team_id, channels)
    known = [
        expected.message_id(channel.channel_id, ts)
        for channel in driver.world.teams[team_id].values()
        for ts in channel.messages
    ]
    match surface % 5:
        case 0 | 1:
            found = await system.ask(context, _question(driver, team_id))
            messages = [one.stored.message for one in found.messages]
            if surface % 2:
                again = await system.reread(context, [m.message_id for m in messages])
                assert again == messages, "the evidence is not what is stored"
        case 2:
            messages = list(await system.timeline(context))
        case 3:
            messages = await system.reread(context, known)
        case _:
            check_words(driver, team_id)
            messages = await system.thread(context, known[-1]) if known else []
    check_shown(expected, context, messages)


def check_words(driver: Driver, team_id: str) -> None:
    """No chunk holds words that are gone: not of a former version, nor of what was removed."""
    allowed = {
        word
        for channel in driver.expected[team_id].channels.values()
        for states in channel.messages.values()
        for version in states
        if version is not None
        for word in _OWN_WORD.findall(version.text)
    }
    texts = driver.system.rows.all("SELECT text FROM chunks WHERE workspace_id = %s", team_id)
    words = {word for (text,) in texts for word in _OWN_WORD.findall(text)}
    assert words <= allowed, f"chunks hold {words - allowed}"


def _question(driver: Driver, team_id: str) -> str:
    """Asks for a word of the newest message: it may have just been edited, or deleted."""
    newest = max(
        (m for c in driver.world.teams[team_id].values() for m in c.messages.values()),
        key=lambda message: max(message.ts, message.version.edited_ts),
        default=None,
    )
    return f"{newest.version.text.split(' ')[0] if newest else ''} harbour"


# Once the queue is empty ------------------------------------------------------------------------


async def check_drained(driver: Driver, team_id: str) -> None:
    """Nothing visible is missing, and everything derived is what a rebuild would give."""
    expected, rows = driver.expected[team_id], driver.system.rows
    stored = {
        expected.message_id(channel_id, ts): (channel_id, version)
        for (channel_id, ts), version in stored_versions(rows, team_id).items()
    }
    wanted = {
        message_id: (channel_id, readable(version))
        for message_id, (channel_id, version) in expected.must_show().items()
    }
    assert stored == wanted
    _check_jobs(driver, team_id)
    _check_members(driver, team_id)
    _check_chunks(driver, team_id)
    await _check_found(driver, expected)


def _check_jobs(driver: Driver, team_id: str) -> None:
    """Every job ended once, and holds no words any more."""
    jobs = driver.system.rows.all(
        "SELECT kind, dedup_key, state FROM jobs WHERE workspace_id = %s AND "
        "(state NOT IN ('done', 'dead') OR payload ? 'envelope' "
        "OR (state = 'done' AND payload <> '{}'))",
        team_id,
    )
    assert not jobs, f"not ended, or not emptied: {jobs}"


def _check_members(driver: Driver, team_id: str) -> None:
    members = driver.system.rows.all(
        "SELECT channel_id, person_id FROM channel_members WHERE workspace_id = %s", team_id
    )
    channels = driver.expected[team_id].channels.items()
    wanted = {(channel_id, person) for channel_id, c in channels for person in c.members}
    assert set(members) == wanted


def _check_chunks(driver: Driver, team_id: str) -> None:
    rebuilt = {row.chunk.chunk_id: _as_stored(row) for row in _rebuilt(driver, team_id)}
    rows = driver.system.rows.all(
        "SELECT c.chunk_id, c.kind, c.text, c.thread_root_id, c.text_sha256, c.token_count, "
        "t.channel_id, t.author_ids, t.posted_from, t.posted_until, "
        "ARRAY(SELECT message_id FROM chunk_messages m "
        "WHERE (m.workspace_id, m.chunk_id) = (c.workspace_id, c.chunk_id) ORDER BY position) "
        "FROM chunks c JOIN chunk_terms t USING (workspace_id, generation_id, chunk_id) "
        "WHERE c.workspace_id = %s",
        team_id,
    )
    assert {row[0]: row[1:] for row in rows} == rebuilt
    _check_vectors(driver, team_id)


def _rebuilt(driver: Driver, team_id: str) -> list[ChunkRow]:
    """The chunks of what must be shown, made from nothing; names as they are known."""
    rows = driver.system.rows
    key = "SELECT {0}_id, {1} FROM {2} WHERE workspace_id = %s"
    channels = dict(rows.all(key.format("channel", "name", "channels"), team_id))
    people = dict(rows.all(key.format("person", "display_name", "people"), team_id))
    texts = dict(rows.all(key.format("message", "text", "messages"), team_id))
    expected = driver.expected[team_id]
    messages = []
    for message_id, (channel_id, version) in expected.must_show().items():
        ts = message_id.rsplit(":", 1)[1]
        posted = driver.world.channel(team_id, channel_id).messages[ts]
        messages.append(
            Message(
                message_id=message_id,
                workspace_id=team_id,
                channel_id=channel_id,
                channel_name=channels[channel_id],
                author_id=version.author_id,
                author_name=people.get(version.author_id, version.author_id),
                posted_at=instant_of(ts),
                # The first line is judged by itself; a preview may stand below it.
                text=texts[message_id],
                thread_root_id=expected.message_id(channel_id, posted.thread_ts or ts),
            )
        )
    threads = group_by_thread(messages)
    return thread_rows(threads, Source.SLACK, driver.system.resources.encoder)


def _as_stored(row: ChunkRow) -> tuple[object, ...]:
    return (
        row.chunk.kind, row.chunk.text, row.thread_root_id, row.text_sha256,
        row.chunk.token_count, row.channel_id, list(row.author_ids), row.posted_from,
        row.posted_until, list(row.chunk.message_ids),
    )  # fmt: skip


def _check_vectors(driver: Driver, team_id: str) -> None:
    rows = driver.system.rows.all(
        "SELECT c.text, v.embedding::text FROM chunks c "
        "LEFT JOIN vectors_384 v USING (workspace_id, generation_id, chunk_id) "
        "WHERE c.workspace_id = %s",
        team_id,
    )
    for text, vector in rows:
        assert vector is not None, f"no vector of {text!r}"
        stored = np.fromstring(vector.strip("[]"), np.float32, sep=",")
        assert np.allclose(stored, vector_of(text), atol=1e-5), (
            f"a vector of another text: {text!r}"
        )
    unused = driver.system.rows.one(
        "SELECT count(*) FROM embedding_cache e WHERE workspace_id = %s AND NOT EXISTS "
        "(SELECT FROM chunks c WHERE (c.workspace_id, c.text_sha256) "
        "= (e.workspace_id, e.text_sha256))",
        team_id,
    )
    assert unused == 0, "the cache holds vectors of texts that are gone"


async def _check_found(driver: Driver, expected: Expected) -> None:
    """The lexical arm finds every visible message by its own word, under all rights."""
    context = context_of(expected.team_id, CHANNELS)
    scope = Scope(context, context.channel_ids, None, None, None)
    shown = list(expected.must_show().items())
    async with db.reading(driver.system.retrieval.pool, expected.team_id) as connection:
        generation = await read_generation(connection, context, "")
        # Few enough that every chunk with one of the words is a candidate.
        for start in range(0, len(shown), 8):
            some = shown[start : start + 8]
            words = " ".join(version.text.split(" ")[0] for _, (_, version) in some)
            query = Query(vector_of(words), lexical_query(words), ())
            rankings = await run_arms(connection, generation, scope, query)
            lists = rankings.lists[Arm.LEXICAL]
            found = {message_id for candidate in lists for message_id in candidate.message_ids}
            missing = {message_id for message_id, _ in some} - found
            assert not missing, f"{missing} is not found by its own word"
            assert not rankings.dense_incomplete


def check_like_slack(driver: Driver) -> None:
    """After everything arrived, Recall shows what Slack shows where the app is, and no more."""
    for team_id in TEAMS:
        expected = driver.expected[team_id]
        slack = {
            expected.message_id(channel.channel_id, message.ts): message.version.text
            for channel in driver.world.teams[team_id].values()
            if channel.has_bot
            for message in channel.alive()
            if message.version.text and message.ts > expected.channel(channel.channel_id).held_ts
        }
        purged = {
            expected.message_id(channel.channel_id, ts)
            for channel in driver.world.teams[team_id].values()
            for ts in expected.channel(channel.channel_id).purged
        }
        shown = {m: version.text for m, (_, version) in expected.must_show().items()}
        recall = {m: text for m, text in shown.items() if m not in purged}
        slack = {m: text for m, text in slack.items() if m not in purged}
        lacking, too_much = slack.items() - recall.items(), recall.items() - slack.items()
        assert recall == slack, f"lacks {lacking}, shows {too_much}"
        names = driver.system.rows.all(
            "SELECT channel_id, name FROM channels WHERE workspace_id = %s", team_id
        )
        for channel_id, name in names:
            channel = driver.world.channel(team_id, channel_id)
            if channel.has_bot:
                assert name == channel.name
