"""What an asker may read: rights cut a wish down, and nothing widens it."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Sequence

import grpc
import pytest

from recall.error.v1 import error_pb2
from recall.gateway.v1 import gateway_pb2
from recall.ingest.v1 import ingest_pb2
from services.gateway.context import public_context, query_context
from services.gateway.directory import Directory
from services.runtime.callers import Caller, Callers
from services.runtime.errors import CallError
from tests.scripted_stages import Script, ScriptedRetrieve, channel, served

PRIVATE = ingest_pb2.CHANNEL_KIND_PRIVATE
CHANNELS = [
    channel("C1", name="ops"),
    channel("C2", name="Old-Stuff", archived=True),
    channel("C3", PRIVATE, name="leads"),
    channel("D1", ingest_pb2.CHANNEL_KIND_DIRECT, name="Ana, Bo"),
    channel("G1", ingest_pb2.CHANNEL_KIND_GROUP_DIRECT, name="mpdm-ana--bo"),
]


def caller(workspaces: Sequence[str] = ("*",), channels: Sequence[str] = ("*",)) -> Caller:
    return Caller("somebody", "token", frozenset(workspaces), frozenset(channels))


@pytest.fixture
def script() -> Script:
    """One workspace with channels of every kind."""
    script = Script(ScriptedRetrieve([]))
    script.ingest.workspaces = {"beacon": CHANNELS}
    return script


@pytest.fixture
async def directory(script: Script, callers: Callers) -> AsyncIterator[Directory]:
    """Names read over gRPC, never kept."""
    async with served(script, callers) as stages:
        yield Directory(stages, time.monotonic, keep_seconds=0)


@pytest.mark.parametrize(
    ("reader", "rights", "expected"),
    [
        pytest.param({}, ["*"], ["C1", "C2"], id="every public channel, archived ones too"),
        pytest.param({}, ["C1", "C3"], ["C1"], id="only what the caller may read"),
        pytest.param({}, [], [], id="a caller without channels reads nothing"),
        pytest.param({"channel_ids": ["C2"]}, ["*"], ["C2"], id="by id"),
        pytest.param({"channel_ids": ["ops"]}, ["*"], ["C1"], id="by name"),
        pytest.param({"channel_ids": [" #OLD-stuff"]}, ["*"], ["C2"], id="by name as typed"),
        pytest.param({"channel_ids": ["C3"]}, ["*"], ["C3"], id="private when named"),
        pytest.param({"channel_ids": ["#leads", "ops"]}, ["*"], ["C1", "C3"], id="both kinds"),
        pytest.param({"channel_ids": ["C3"]}, ["C1"], [], id="private without the right"),
        pytest.param({"channel_ids": ["leads"]}, ["C1"], [], id="private name without the right"),
        pytest.param({"channel_ids": ["D1", "G1"]}, ["*"], ["D1", "G1"], id="direct when named"),
        pytest.param({"channel_ids": ["C9", "ops"]}, ["*"], ["C1"], id="unknown ones are dropped"),
        pytest.param({"channel_ids": ["C9"]}, ["*"], [], id="only unknown reads nothing"),
        pytest.param({"channel_ids": ["", "#"]}, ["*"], [], id="empty names name nothing"),
        pytest.param({"no_channels": True}, ["*"], [], id="nothing is wished"),
        pytest.param({"no_channels": True, "channel_ids": ["C1"]}, ["*"], [], id="nothing wins"),
    ],
)
async def test_a_wish_is_cut_down_to_the_caller_s_rights(
    directory: Directory, reader: dict[str, object], rights: list[str], expected: list[str]
) -> None:
    wish = gateway_pb2.Reader(workspace_id="beacon", **reader)  # type: ignore[arg-type]
    context = await query_context(wish, caller(channels=rights), directory)
    assert list(context.channel_ids) == expected
    assert context.workspace_id == "beacon"


async def test_the_only_readable_workspace_needs_no_name(
    directory: Directory, script: Script
) -> None:
    script.ingest.workspaces = {"beacon": CHANNELS, "other": []}
    context = await query_context(gateway_pb2.Reader(), caller(["beacon"]), directory)
    assert context.workspace_id == "beacon"


async def test_among_several_workspaces_one_must_be_named_and_only_readable_ones_are_listed(
    directory: Directory, script: Script
) -> None:
    script.ingest.workspaces = {"beacon": CHANNELS, "other": [], "secret": []}
    with pytest.raises(CallError) as raised:
        await query_context(gateway_pb2.Reader(), caller(["beacon", "other"]), directory)
    assert raised.value.code is grpc.StatusCode.INVALID_ARGUMENT
    assert "beacon, other" in raised.value.message
    assert "secret" not in raised.value.message


async def test_an_unreadable_workspace_is_answered_like_an_absent_one(
    directory: Directory, script: Script
) -> None:
    script.ingest.workspaces = {"beacon": CHANNELS, "secret": []}
    answers = []
    for name in ("secret", "absent"):
        with pytest.raises(CallError) as raised:
            wish = gateway_pb2.Reader(workspace_id=name)
            await query_context(wish, caller(["beacon"]), directory)
        answers.append((raised.value.code, raised.value.message.replace(name, "NAME")))
    assert answers[0] == answers[1]
    assert answers[0][0] is grpc.StatusCode.NOT_FOUND


async def test_with_nothing_imported_the_remedy_is_told(
    directory: Directory, script: Script
) -> None:
    script.ingest.workspaces = {}
    with pytest.raises(CallError, match="recall import"):
        await query_context(gateway_pb2.Reader(), caller(), directory)


async def test_the_page_reads_public_channels_only(directory: Directory) -> None:
    context = await public_context("beacon", directory)
    assert list(context.channel_ids) == ["C1", "C2"]


async def test_a_page_without_its_workspace_says_how_to_load_it(directory: Directory) -> None:
    with pytest.raises(CallError, match="recall import PATH --workspace elsewhere") as raised:
        await public_context("elsewhere", directory)
    assert raised.value.code is grpc.StatusCode.UNAVAILABLE
    assert raised.value.reason == error_pb2.ERROR_REASON_WORKSPACE_NOT_FOUND


async def test_a_channel_made_private_is_left_out_once_the_names_are_read_again(
    script: Script, callers: Callers
) -> None:
    now = [0.0]
    async with served(script, callers) as stages:
        directory = Directory(stages, lambda: now[0], keep_seconds=10)
        before = await public_context("beacon", directory)
        script.ingest.workspaces["beacon"] = [channel("C1", PRIVATE, name="ops"), CHANNELS[1]]
        now[0] = 10.0
        after = await public_context("beacon", directory)
    assert (list(before.channel_ids), list(after.channel_ids)) == (["C1", "C2"], ["C2"])


async def test_a_workspace_is_found_as_soon_as_it_is_imported(
    script: Script, callers: Callers
) -> None:
    script.ingest.workspaces = {}
    async with served(script, callers) as stages:
        directory = Directory(stages, lambda: 0.0)
        for workspace_id in ("beacon", "second"):
            with pytest.raises(CallError):
                await public_context(workspace_id, directory)
            script.ingest.workspaces[workspace_id] = CHANNELS
            context = await public_context(workspace_id, directory)
            assert context.workspace_id == workspace_id


async def test_without_ingest_nothing_is_guessed(script: Script, callers: Callers) -> None:
    async with served(script, callers, absent=("ingest",)) as stages:
        directory = Directory(stages, time.monotonic)
        with pytest.raises(CallError) as raised:
            await query_context(gateway_pb2.Reader(), caller(), directory)
    assert raised.value.code is grpc.StatusCode.UNAVAILABLE
    assert "ingest" in raised.value.message
