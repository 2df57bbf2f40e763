"""ReadMessages, ReadThread and ReadTimeline: the same wall, time order, pages that miss nothing."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator, Iterator

import grpc
import psycopg
import pytest

from recall.corpus.v1 import corpus_pb2
from recall.error.v1 import error_pb2
from recall.retrieve.v1 import retrieve_pb2
from services.corpus import instant, timestamp
from services.retrieve.stored_messages import CUT_NOTE, MAX_REPLY_BYTES, MAX_TEXT_CHARACTERS
from services.runtime.errors import from_rpc_error
from tests.conftest import Serve
from tests.integration.retrieve_stage import Stub, reader, retrieve_stage
from tests.integration.seed import Seed, at

ROOT = "slack:T1:C1:1788253200.000100"
REPLIES = [f"slack:T1:C1:17882532{minute}0.000200" for minute in (1, 2, 3)]
LONE = "slack:T1:C2:1788253999.000300"
HIDDEN = "slack:T1:C9:1788254999.000400"


@pytest.fixture
def seed(database_url: str) -> Iterator[Seed]:
    """A thread of four in #ops, one message in #random, one in a private channel."""
    with psycopg.connect(database_url, autocommit=True) as connection:
        seed = Seed(connection).workspace()
        seed.channel("C1", "ops")
        seed.channel("C2", "random")
        seed.channel("C9", "layoffs", "private")
        seed.person("U1", "linnea")
        seed.message(ROOT, "who is on call?", posted_at=at(0))
        for minute, message_id in enumerate(REPLIES, start=1):
            seed.message(
                message_id,
                f"reply {minute}",
                author_id="U2",
                author_name="Tomo",
                posted_at=at(minute),
                root_id=ROOT,
            )
        seed.message(LONE, "soup", channel_id="C2", author_id="U3", posted_at=at(9))
        seed.message(HIDDEN, "secret", channel_id="C9", posted_at=at(99))
        yield seed


@pytest.fixture
async def stub(seed: Seed, database_url: str, serve: Serve) -> AsyncIterator[Stub]:
    async with retrieve_stage(database_url, serve) as client:
        yield client


def ids(response: retrieve_pb2.ReadTimelineResponse | retrieve_pb2.ReadThreadResponse) -> list[str]:
    return [message.message_id for message in response.messages]


async def read(stub: Stub, message_ids: list[str], *channels: str) -> list[corpus_pb2.Message]:
    request = retrieve_pb2.ReadMessagesRequest(context=reader(*channels), message_ids=message_ids)
    return list((await stub.ReadMessages(request)).messages)


async def test_messages_come_in_the_order_asked_without_what_may_not_be_read(
    stub: Stub, seed: Seed
) -> None:
    seed.delete(REPLIES[1])
    asked = [LONE, HIDDEN, REPLIES[0], "slack:T1:C1:9.000009", REPLIES[1], ROOT, LONE]
    messages = await read(stub, asked, "C1", "C2")
    assert [message.message_id for message in messages] == [LONE, REPLIES[0], ROOT]


async def test_names_fall_back_to_the_record_and_then_to_the_id(stub: Stub) -> None:
    messages = await read(stub, [ROOT, REPLIES[0], LONE], "C1", "C2")
    assert [message.author_name for message in messages] == ["linnea", "Tomo", "U3"]


async def test_a_rename_shows_at_once(stub: Stub, seed: Seed) -> None:
    seed.connection.execute("UPDATE people SET display_name = 'linnea (away)'")
    seed.connection.execute("UPDATE channels SET name = 'on-call' WHERE channel_id = 'C1'")
    [message] = await read(stub, [ROOT], "C1")
    assert (message.author_name, message.channel_name) == ("linnea (away)", "on-call")


async def test_empty_channels_read_no_message(stub: Stub) -> None:
    assert await read(stub, [ROOT]) == []


async def test_messages_of_another_source_do_not_exist(stub: Stub) -> None:
    context = corpus_pb2.QueryContext(
        source=corpus_pb2.SOURCE_SYNTHETIC, workspace_id="T1", channel_ids=["C1"]
    )
    request = retrieve_pb2.ReadMessagesRequest(context=context, message_ids=[ROOT])
    assert not (await stub.ReadMessages(request)).messages


async def test_more_than_200_ids_are_refused(stub: Stub) -> None:
    with pytest.raises(grpc.RpcError) as raised:
        await read(stub, [ROOT] * 201, "C1")
    assert from_rpc_error(raised.value).code == grpc.StatusCode.INVALID_ARGUMENT


@pytest.mark.parametrize("message_id", [ROOT, *REPLIES])
async def test_any_message_of_a_thread_opens_it_root_first(stub: Stub, message_id: str) -> None:
    request = retrieve_pb2.ReadThreadRequest(context=reader("C1"), message_id=message_id)
    assert ids(await stub.ReadThread(request)) == [ROOT, *REPLIES]


async def test_a_thread_outlives_its_deleted_root(stub: Stub, seed: Seed) -> None:
    seed.delete(ROOT)
    for message_id in (ROOT, REPLIES[2]):
        request = retrieve_pb2.ReadThreadRequest(context=reader("C1"), message_id=message_id)
        assert ids(await stub.ReadThread(request)) == REPLIES


async def test_an_unreadable_thread_is_answered_like_an_unknown_one(stub: Stub, seed: Seed) -> None:
    seed.delete(REPLIES[0])
    answers = set()
    for message_id, channels in (
        (HIDDEN, ("C1", "C2")),
        ("slack:T1:C1:1.000001", ("C1", "C2")),
        (ROOT, ("C2",)),
        (ROOT, ()),
        (REPLIES[0], ("C1",)),
    ):
        request = retrieve_pb2.ReadThreadRequest(context=reader(*channels), message_id=message_id)
        with pytest.raises(grpc.RpcError) as raised:
            await stub.ReadThread(request)
        error = from_rpc_error(raised.value)
        assert error.reason == error_pb2.ERROR_REASON_NOT_FOUND
        answers.add((error.code, error.message.replace(message_id, "?")))
    assert len(answers) == 1


def timeline(*channels: str, **fields: object) -> retrieve_pb2.ReadTimelineRequest:
    return retrieve_pb2.ReadTimelineRequest(context=reader(*channels), **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize("newest_first", [False, True])
async def test_pages_hold_every_message_once_and_in_order(stub: Stub, newest_first: bool) -> None:
    everything = [ROOT, *REPLIES, LONE]
    pages: list[list[str]] = []
    token = ""
    while token or not pages:
        page = await stub.ReadTimeline(
            timeline("C1", "C2", page_size=2, page_token=token, newest_first=newest_first)
        )
        pages.append(ids(page))
        token = page.next_page_token
    assert [len(page) for page in pages] == [2, 2, 1]
    read = [message_id for page in pages for message_id in page]
    assert read == (everything[::-1] if newest_first else everything)


async def test_messages_of_one_instant_are_paged_by_id(stub: Stub, seed: Seed) -> None:
    for number in range(5):
        seed.message(f"slack:T1:C2:5.00000{number}", "same", channel_id="C2", posted_at=at(50))
    first = await stub.ReadTimeline(timeline("C2", page_size=3))
    second = await stub.ReadTimeline(timeline("C2", page_size=3, page_token=first.next_page_token))
    assert len({*ids(first), *ids(second)}) == 6
    assert not second.next_page_token


async def test_a_message_that_arrives_between_pages_repeats_none(stub: Stub, seed: Seed) -> None:
    first = await stub.ReadTimeline(timeline("C1", page_size=2, newest_first=True))
    seed.message("slack:T1:C1:9.000009", "late", posted_at=at(60))
    second = await stub.ReadTimeline(
        timeline("C1", page_size=5, page_token=first.next_page_token, newest_first=True)
    )
    assert [*ids(first), *ids(second)] == [*REPLIES[::-1], ROOT]


async def test_the_most_recent_message_of_a_person_in_a_channel_is_exact(
    stub: Stub, seed: Seed
) -> None:
    seed.message("slack:T1:C2:9.000009", "elsewhere", channel_id="C2", posted_at=at(70))
    page = await stub.ReadTimeline(
        timeline(
            *("C1", "C2"),
            filter=corpus_pb2.Filter(author="linnea", in_channel="#ops"),
            page_size=1,
            newest_first=True,
        )
    )
    assert ids(page) == [ROOT]


async def test_a_range_includes_its_beginning_and_excludes_its_end(stub: Stub) -> None:
    page = await stub.ReadTimeline(
        timeline(
            *("C1", "C2"),
            filter=corpus_pb2.Filter(posted_after=timestamp(at(1)), posted_before=timestamp(at(3))),
        )
    )
    assert ids(page) == REPLIES[:2]


async def test_the_newest_instant_is_the_readers_own(stub: Stub, seed: Seed) -> None:
    page = await stub.ReadTimeline(timeline("C1", "C2", page_size=1))
    assert instant(page.newest_at) == at(9)
    seed.delete(LONE)
    page = await stub.ReadTimeline(timeline("C1", "C2", page_size=1))
    assert instant(page.newest_at) == at(3)


@pytest.mark.parametrize(
    ("channels", "narrowing", "reason"),
    [
        (
            (),
            corpus_pb2.Filter(),
            "No channel may be read in this context, so nothing was looked at.",
        ),
        (
            ("C1",),
            corpus_pb2.Filter(in_channel="layoffs"),
            "There is no channel “layoffs” that you can read.",
        ),
        (
            ("C1",),
            corpus_pb2.Filter(in_channel="nosuch"),
            "There is no channel “nosuch” that you can read.",
        ),
        (
            ("C1",),
            corpus_pb2.Filter(author="Nobody"),
            "There is no message by “Nobody” that you can read.",
        ),
        (("C1",), corpus_pb2.Filter(author="Tomo", in_channel="ops"), ""),
    ],
)
async def test_an_empty_timeline_says_why(
    stub: Stub, channels: tuple[str, ...], narrowing: corpus_pb2.Filter, reason: str
) -> None:
    page = await stub.ReadTimeline(timeline(*channels, filter=narrowing))
    assert page.reason == reason
    assert bool(page.messages) is not bool(reason)


def as_token(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode()


@pytest.mark.parametrize(
    "token",
    [
        "x",
        "é",
        "\0",
        as_token("not json"),
        as_token("[1, 2, 3]"),
        as_token('["2026-01-01T00:00:00+00:00", 5, false]'),
        as_token('["2026-01-01T00:00:00+00:00", "\\ud800", false]'),
        as_token('["2026-01-01T00:00:00+00:00", "\\u0000", false]'),
        as_token("[" * 100_000),
    ],
)
async def test_a_foreign_page_token_is_refused(stub: Stub, token: str) -> None:
    with pytest.raises(grpc.RpcError) as raised:
        await stub.ReadTimeline(timeline("C1", page_token=token))
    error = from_rpc_error(raised.value)
    assert error.code == grpc.StatusCode.INVALID_ARGUMENT
    assert "page_token" in error.message


async def test_a_token_of_the_other_direction_is_refused(stub: Stub) -> None:
    first = await stub.ReadTimeline(timeline("C1", page_size=1))
    with pytest.raises(grpc.RpcError) as raised:
        await stub.ReadTimeline(timeline("C1", page_token=first.next_page_token, newest_first=True))
    assert "page_token" in from_rpc_error(raised.value).message


async def test_a_page_size_out_of_range_is_refused(stub: Stub) -> None:
    for size in (-1, 501):
        with pytest.raises(grpc.RpcError) as raised:
            await stub.ReadTimeline(timeline("C1", page_size=size))
        assert "page_size" in from_rpc_error(raised.value).message


@pytest.fixture
def pasted_logs(seed: Seed) -> list[str]:
    """Eighty messages of 7 MB each in one thread: more than any reply can carry."""
    seed.channel("C3", "logs")
    log = "日誌 " * 1_000_000
    message_ids = [f"slack:T1:C3:17883000{number:02}.000100" for number in range(80)]
    for number, message_id in enumerate(message_ids):
        seed.message(
            message_id,
            log,
            channel_id="C3",
            posted_at=at(100 + number),
            root_id=message_ids[0],
            indexed=False,
        )
    return message_ids


async def test_a_text_of_megabytes_is_cut_and_keeps_the_hash_of_the_whole(
    stub: Stub, seed: Seed, pasted_logs: list[str]
) -> None:
    [message] = await read(stub, pasted_logs[:1], "C3")
    assert len(message.text) == MAX_TEXT_CHARACTERS + len(CUT_NOTE)
    assert message.text.endswith(CUT_NOTE)
    stored = "SELECT content_sha256 FROM messages WHERE message_id = %s"
    [row] = seed.connection.execute(stored, (message.message_id,)).fetchall()
    assert message.content_sha256 == row[0]


async def test_pages_of_long_messages_are_shorter_and_miss_nothing(
    stub: Stub, pasted_logs: list[str]
) -> None:
    found: list[str] = []
    sizes: list[int] = []
    token = ""
    while not sizes or token:
        page = await stub.ReadTimeline(timeline("C3", page_size=50, page_token=token))
        found += ids(page)
        sizes.append(page.ByteSize())
        token = page.next_page_token
    assert found == pasted_logs
    assert max(sizes) < MAX_REPLY_BYTES + 1_000_000


async def test_a_thread_of_long_messages_shows_its_beginning(
    stub: Stub, pasted_logs: list[str]
) -> None:
    request = retrieve_pb2.ReadThreadRequest(context=reader("C3"), message_id=pasted_logs[-1])
    opened = ids(await stub.ReadThread(request))
    assert opened == pasted_logs[: len(opened)]
    assert len(opened) > 1
