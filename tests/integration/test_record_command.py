"""What is durable once a command is acknowledged."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc
import pytest
from google.protobuf import json_format

from recall.ingest.v1 import jobs_pb2, slack_pb2
from tests import builders as b
from tests.integration.app_fixtures import App, install
from tests.integration.ingest_fixtures import Rows, call_fails

NEW = slack_pb2.RECORDED_NEW
DUPLICATE = slack_pb2.RECORDED_DUPLICATE
IGNORED = slack_pb2.RECORDED_IGNORED

ASKED = slack_pb2.SlackCommand(
    door=slack_pb2.COMMAND_DOOR_SLASH,
    text="ask which berth is free? gänseblümchen",
    user_id="U1",
    channel_id=b.GENERAL,
    response_url="https://hooks.example/1",
    trigger_id="12.34.ab",
    fields={"newer_link": "https://harbour.example/p1"},
)


async def ask(
    app: App, key: str = "12.34.ab", command: slack_pb2.SlackCommand = ASKED, team: str = b.TEAM
) -> slack_pb2.Recorded.ValueType:
    request = slack_pb2.RecordCommandRequest(team_id=team, dedup_key=key, command=command)
    return (await app.ingest.ingest.RecordCommand(request)).recorded


async def test_a_command_is_one_job_however_often_it_is_delivered(app: App, rows: Rows) -> None:
    outcomes = await asyncio.gather(*(ask(app) for _ in range(6)))
    assert sorted(outcomes) == [NEW, *[DUPLICATE] * 5]
    assert rows.all("SELECT workspace_id, kind, dedup_key FROM jobs") == [
        ("W", "command", "12.34.ab")
    ]


async def test_the_worker_reads_the_command_that_was_recorded(app: App) -> None:
    await ask(app)
    reply = await app.ingest.jobs.ClaimJobs(jobs_pb2.ClaimJobsRequest(kinds=["command"]))
    read = json_format.Parse(reply.jobs[0].payload_json, slack_pb2.SlackCommand())
    assert read == ASKED


async def test_a_command_is_a_duplicate_after_it_was_answered(app: App, rows: Rows) -> None:
    await ask(app)
    reply = await app.ingest.jobs.ClaimJobs(jobs_pb2.ClaimJobsRequest(kinds=["command"]))
    job = reply.jobs[0]
    done = jobs_pb2.CompleteJobRequest(
        workspace_id=job.workspace_id, job_id=job.job_id, claim_number=job.claim_number
    )
    assert (await app.ingest.jobs.CompleteJob(done)).held
    assert rows.all("SELECT state, payload FROM jobs") == [("done", {})]
    assert await ask(app) == DUPLICATE


async def test_a_command_of_a_team_without_an_installation_is_ignored(app: App, rows: Rows) -> None:
    rows.execute("INSERT INTO workspaces (workspace_id, source, team_id) VALUES ('A','slack','T9')")
    for team in ("T9", "T0NOBODY", ""):
        assert await ask(app, team=team) == IGNORED
    assert rows.one("SELECT count(*) FROM jobs") == 0


async def test_the_same_key_of_two_teams_are_two_commands(app: App, rows: Rows) -> None:
    install(rows, "W2", "T0OTHER")
    assert await ask(app) == await ask(app, team="T0OTHER") == NEW
    assert rows.all("SELECT workspace_id FROM jobs ORDER BY 1") == [("W",), ("W2",)]


async def test_what_no_column_holds_is_left_out_of_a_command(app: App, rows: Rows) -> None:
    command = slack_pb2.SlackCommand(
        door=slack_pb2.COMMAND_DOOR_VIEW, text="a\0b", fields={"link\0": "c\0d"}
    )
    assert await ask(app, command=command) == NEW
    payload = rows.one("SELECT payload FROM jobs")
    assert (payload["text"], payload["fields"]) == ("ab", {"link": "cd"})


@pytest.mark.parametrize(
    ("changes", "field"),
    [({"dedup_key": ""}, "dedup_key"), ({"command": slack_pb2.SlackCommand()}, "command.door")],
)
async def test_a_command_without_a_key_or_a_door_is_refused_by_name(
    app: App, changes: dict[str, Any], field: str
) -> None:
    request: dict[str, Any] = {"team_id": b.TEAM, "dedup_key": "k", "command": ASKED} | changes
    with call_fails() as errors:
        await app.ingest.ingest.RecordCommand(slack_pb2.RecordCommandRequest(**request))
    assert errors[0].code == grpc.StatusCode.INVALID_ARGUMENT
    assert errors[0].metadata["field"] == field
