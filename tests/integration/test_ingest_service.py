"""Ingest's reading RPCs and the rights of their callers, over real gRPC."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from pathlib import Path

import grpc
import pytest

from recall.corpus.v1 import corpus_pb2
from recall.error.v1 import error_pb2
from recall.ingest.v1 import generations_pb2
from recall.ingest.v1 import ingest_pb2 as pb
from services.corpus import instant
from services.ingest.config import read_config
from services.runtime.config import ConfigError
from tests import builders as b
from tests.integration.ingest_fixtures import Ingest, Rows, call_fails

Call = Callable[[Ingest, str], Awaitable[object]]

CALLS: dict[str, Call] = {
    "GetCoverage": lambda i, w: i.ingest.GetCoverage(pb.GetCoverageRequest(workspace_id=w)),
    "ListChannels": lambda i, w: i.directory.ListChannels(pb.ListChannelsRequest(workspace_id=w)),
    "ListGenerations": lambda i, w: i.generations.ListGenerations(
        generations_pb2.ListGenerationsRequest(workspace_id=w)
    ),
    "BuildGeneration": lambda i, w: i.generations.BuildGeneration(
        generations_pb2.BuildGenerationRequest(workspace_id=w)
    ),
    "PromoteGeneration": lambda i, w: i.generations.PromoteGeneration(
        generations_pb2.PromoteGenerationRequest(workspace_id=w, generation_id="g-1")
    ),
    "ValidateGeneration": lambda i, w: i.generations.ValidateGeneration(
        generations_pb2.ValidateGenerationRequest(workspace_id=w, generation_id="g-1")
    ),
    "RollbackGeneration": lambda i, w: i.generations.RollbackGeneration(
        generations_pb2.RollbackGenerationRequest(workspace_id=w)
    ),
    "CollectGenerations": lambda i, w: i.generations.CollectGenerations(
        generations_pb2.CollectGenerationsRequest(workspace_id=w)
    ),
}


@pytest.fixture
def limit_operator(tmp_path: Path) -> Callable[[list[str], list[str]], None]:
    """Rewrites the rights of the caller that the tests use."""

    def limit(workspaces: list[str], channels: list[str]) -> None:
        path = tmp_path / "home" / "callers.json"
        entries = json.loads(path.read_text("utf-8"))
        entries["callers"][0] |= {"workspaces": workspaces, "channels": channels}
        path.write_text(json.dumps(entries), "utf-8")

    return limit


@pytest.mark.parametrize("name", CALLS)
async def test_an_unknown_workspace_is_not_found_with_the_remedy(ingest: Ingest, name: str) -> None:
    with call_fails() as errors:
        await CALLS[name](ingest, "nowhere")
    assert errors[0].code == grpc.StatusCode.NOT_FOUND
    assert errors[0].reason == error_pb2.ERROR_REASON_WORKSPACE_NOT_FOUND
    assert "'nowhere'" in errors[0].message and "recall import" in errors[0].message


@pytest.mark.parametrize("name", CALLS)
async def test_a_caller_without_the_workspace_is_refused(
    ingest: Ingest, name: str, limit_operator: Callable[[list[str], list[str]], None]
) -> None:
    await ingest.load(b.slack_import(b.slack_record("hello")))
    limit_operator(["other"], ["*"])
    with call_fails() as errors:
        await CALLS[name](ingest, "W")
    assert errors[0].code == grpc.StatusCode.PERMISSION_DENIED


async def test_a_caller_may_not_import_into_a_workspace_it_may_not_use(
    ingest: Ingest, rows: Rows, limit_operator: Callable[[list[str], list[str]], None]
) -> None:
    limit_operator(["other"], ["*"])
    with call_fails() as errors:
        await ingest.load(b.slack_import(b.slack_record("hello")))
    assert errors[0].code == grpc.StatusCode.PERMISSION_DENIED
    assert rows.all("SELECT workspace_id FROM workspaces") == []


async def test_workspaces_are_listed_that_the_caller_may_read(
    ingest: Ingest, limit_operator: Callable[[list[str], list[str]], None]
) -> None:
    for workspace_id in ("A", "B"):
        await ingest.load(b.slack_import(b.slack_record("hello"), workspace_id=workspace_id))
    await ingest.load([b.lines_header("C"), b.records(b.json_line("1", "hello"), folder="")])
    everything = await ingest.directory.ListWorkspaces(pb.ListWorkspacesRequest())
    assert [(w.workspace_id, w.source, w.team_id) for w in everything.workspaces] == [
        ("A", corpus_pb2.SOURCE_SLACK, b.TEAM),
        ("B", corpus_pb2.SOURCE_SLACK, b.TEAM),
        ("C", corpus_pb2.SOURCE_SYNTHETIC, ""),
    ]
    limit_operator(["B"], ["*"])
    limited = await ingest.directory.ListWorkspaces(pb.ListWorkspacesRequest())
    assert [w.workspace_id for w in limited.workspaces] == ["B"]


async def test_channels_and_coverage_show_what_the_caller_may_read(
    ingest: Ingest, limit_operator: Callable[[list[str], list[str]], None]
) -> None:
    await ingest.load(
        [
            b.header(embedder="local"),
            b.channels(b.slack_channel("C1", "open", purpose={"value": "all"}, is_archived=True)),
            b.groups(b.slack_channel("G1", "closed")),
            b.records(b.slack_record("one", 5), b.slack_record("two", 1), folder="open"),
            b.records(b.slack_record("three", 3), folder="closed"),
        ]
    )
    found = await ingest.directory.ListChannels(pb.ListChannelsRequest(workspace_id="W"))
    closed, opened = found.channels
    assert (closed.channel_id, closed.kind) == ("G1", pb.CHANNEL_KIND_PRIVATE)
    assert (opened.name, opened.purpose, opened.is_archived) == ("open", "all", True)
    coverage = await ingest.ingest.GetCoverage(pb.GetCoverageRequest(workspace_id="W"))
    assert [(c.channel_id, c.messages) for c in coverage.channels] == [("G1", 1), ("C1", 2)]
    ends = (coverage.channels[1].oldest_at, coverage.channels[1].newest_at)
    assert [instant(end).second for end in ends] == [1, 5]
    assert (coverage.chunks, coverage.chunks_without_vector) == (3, 3)
    assert (coverage.embedder, coverage.embedding_job_state) == ("local", "ready")
    assert coverage.source == corpus_pb2.SOURCE_SLACK
    request = pb.GetCoverageRequest(workspace_id="W", channel_ids=["G1", "elsewhere"])
    chosen = await ingest.ingest.GetCoverage(request)
    assert [(c.channel_id, c.messages) for c in chosen.channels] == [("G1", 1)]
    assert chosen.chunks == 1
    limit_operator(["W"], ["C1"])
    limited = await ingest.directory.ListChannels(pb.ListChannelsRequest(workspace_id="W"))
    assert [channel.channel_id for channel in limited.channels] == ["C1"]
    covered = await ingest.ingest.GetCoverage(pb.GetCoverageRequest(workspace_id="W"))
    assert [channel.channel_id for channel in covered.channels] == ["C1"]
    assert (covered.chunks, covered.chunks_without_vector) == (2, 2)
    listed = await ingest.generations.ListGenerations(
        generations_pb2.ListGenerationsRequest(workspace_id="W")
    )
    assert [generation.chunks for generation in listed.generations] == [2]


@pytest.mark.parametrize(
    "name",
    [
        *("BuildGeneration", "PromoteGeneration", "ValidateGeneration"),
        *("RollbackGeneration", "CollectGenerations"),
    ],
)
async def test_what_serves_everybody_is_changed_only_by_a_caller_of_every_channel(
    ingest: Ingest, limit_operator: Callable[[list[str], list[str]], None], name: str
) -> None:
    await ingest.load(b.slack_import(b.slack_record("hello"), embedder="local"))
    limit_operator(["W"], ["C1"])
    with call_fails() as errors:
        await CALLS[name](ingest, "W")
    assert errors[0].reason == error_pb2.ERROR_REASON_CALLER_NOT_ALLOWED


async def test_a_channel_without_messages_has_no_oldest_one(ingest: Ingest) -> None:
    await ingest.load([b.header(), b.channels(b.slack_channel("C1", "quiet"))])
    coverage = await ingest.ingest.GetCoverage(pb.GetCoverageRequest(workspace_id="W"))
    assert [channel.messages for channel in coverage.channels] == [0]
    assert not coverage.channels[0].HasField("oldest_at")


async def test_an_embedder_that_is_unknown_is_named(ingest: Ingest) -> None:
    await ingest.load(b.slack_import(b.slack_record("hello")))
    with call_fails() as errors:
        await ingest.generations.BuildGeneration(
            generations_pb2.BuildGenerationRequest(workspace_id="W", embedder="magic")
        )
    assert errors[0].code == grpc.StatusCode.INVALID_ARGUMENT
    assert errors[0].metadata["field"] == "embedder"


def test_a_process_without_a_database_says_which_setting_is_missing() -> None:
    with pytest.raises(ConfigError, match="DATABASE_URL is not set"):
        read_config({})


def test_the_roles_are_derived_from_the_owners_url_unless_given() -> None:
    derived = read_config({"DATABASE_URL": "postgresql://o@h/d"})
    assert "role%3Drecall_ingest" in derived.ingest_url
    assert "role%3Drecall_queue" in derived.queue_url
    given = read_config(
        {"RECALL_INGEST_DATABASE_URL": "postgresql://i@h/d",
         "RECALL_QUEUE_DATABASE_URL": "postgresql://q@h/d"}
    )  # fmt: skip
    assert (given.ingest_url, given.queue_url) == ("postgresql://i@h/d", "postgresql://q@h/d")
