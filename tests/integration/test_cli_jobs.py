"""``recall jobs`` and ``recall purge`` as commands, against a running ingest."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from services.ingest import queue
from services.ingest.backoff import NextRun
from services.ingest.job_loop import JobLoop
from services.ingest.purge import handle_purge
from services.ingest.queue import NewJob
from services.ingest.resources import Resources
from services.ingest.service import servicers
from services.ingest.upkeep import Upkeep
from services.runtime import db
from tests import builders as b
from tests.conftest import Serve
from tests.integration.ingest_fixtures import Ingest, Rows

W = "W"


@dataclass(frozen=True)
class Result:
    """What one run of the command gave."""

    status: int | None
    output: str
    errors: str

    @property
    def json(self) -> Any:
        """The output as JSON."""
        return json.loads(self.output)


Recall = Callable[..., Coroutine[Any, Any, Result]]


@pytest.fixture
async def recall(
    resources: Resources, upkeep: Upkeep, serve: Serve, tmp_path: Path
) -> AsyncIterator[Recall]:
    """Run the command; it reaches an ingest and no gateway."""
    async with serve(servicers(resources, upkeep)) as peer:
        environ = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            "RECALL_HOME": str(tmp_path / "home"),
            "RECALL_INGEST_TARGET": peer.target,
        }

        async def run(*arguments: str, stdin: int = asyncio.subprocess.DEVNULL) -> Result:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "services.cli", *arguments),
                env=environ,
                stdin=stdin,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
            )
            output, errors = await process.communicate()
            return Result(process.returncode, output.decode(), errors.decode())

        yield run


@pytest.fixture
def workspace(rows: Rows) -> None:
    """A workspace without anything in it."""
    rows.execute("INSERT INTO workspaces (workspace_id, source) VALUES ('W', 'slack')")


async def enqueue(resources: Resources, kind: str, key: str) -> None:
    async with db.writing(resources.pool, W) as connection:
        await queue.enqueue(connection, W, NewJob(kind, key, {}))


async def one_of_each(resources: Resources) -> dict[str, str]:
    """A dead, a running, a retrying and a done job; their ids."""
    ids = {}
    for state in ("done", "dead", "running", "retrying"):
        await enqueue(resources, "event", state)
        (job,) = await queue.claim(resources.queue_pool, ("event",))
        ids[state] = job.job_id
        if state == "done":
            await queue.complete(resources.queue_pool, job)
        elif state == "dead":
            error = "Slack refused the token of the installation: install the app again. " * 2
            await queue.fail(resources.queue_pool, job, NextRun(8, None), error)
        elif state == "retrying":
            await queue.fail(resources.queue_pool, job, NextRun(1, 60.0), "It broke.")
    return ids


@pytest.mark.usefixtures("workspace")
async def test_the_list_fits_a_terminal_and_shows_the_dead_first_with_their_errors(
    recall: Recall, resources: Resources
) -> None:
    ids = await one_of_each(resources)
    result = await recall("jobs", "--workspace", W)
    lines = result.output.splitlines()
    assert (result.status, result.errors) == (0, "")
    assert max(map(len, lines)) <= 80
    found = [word for line in lines for word in line.split()[:1] if word in ids.values()]
    assert found == [ids["dead"], ids["running"], ids["retrying"]]
    assert "dead" in lines[1] and "8/8" in lines[1]
    assert lines[2].startswith("  Slack refused the token")
    assert any("Runs again at" in line and "It broke." in line for line in lines)
    assert lines[-1].endswith("recall jobs retry JOB")


@pytest.mark.usefixtures("workspace")
async def test_a_dead_job_is_retried_by_its_id(
    recall: Recall, resources: Resources, rows: Rows
) -> None:
    ids = await one_of_each(resources)
    result = await recall("jobs", "retry", ids["dead"], "--workspace", W, "--json")
    assert result.status == 0
    assert (result.json["job_id"], result.json["state"]) == (ids["dead"], "ready")
    assert rows.one("SELECT state FROM jobs WHERE dedup_key = 'dead'") == "ready"
    again = await recall("jobs", "retry", ids["dead"], "--workspace", W)
    assert again.status == 2 and "is ready; only a dead job" in again.errors


@pytest.mark.usefixtures("workspace")
async def test_the_list_as_json_holds_every_field(recall: Recall, resources: Resources) -> None:
    ids = await one_of_each(resources)
    dead, *others = (await recall("jobs", "list", "--workspace", W, "--json")).json
    assert (dead["job_id"], dead["kind"], dead["state"]) == (ids["dead"], "event", "dead")
    assert dead["attempts"] == 8 and dead["finished_at"].endswith("Z")
    assert [each["state"] for each in others] == ["running", "ready"]
    assert all(each["finished_at"] is None for each in others)


@pytest.mark.usefixtures("workspace")
async def test_a_workspace_without_jobs_says_so(recall: Recall) -> None:
    result = await recall("jobs", "--workspace", W)
    assert (result.status, result.output) == (0, "W: no job waits, runs or is dead.\n")


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("jobs", "retry", "--workspace", W), "JOB is missing"),
        (("jobs", "list", "some-job", "--workspace", W), "recall jobs retry JOB"),
        (("jobs", "--workspace", "nowhere"), "There is no workspace 'nowhere'"),
        (("jobs", "retry", "some-job", "--workspace", W), "There is no job 'some-job'"),
        (("purge", "--yes"), "--workspace is missing"),
        (("purge", "--workspace", W), "--yes is missing: this deletes all of W"),
        (("purge", "--workspace", "nowhere", "--yes"), "There is no workspace 'nowhere'"),
        (("purge", "--workspace", W, "--channel", "nowhere", "--yes"), "--channel 'nowhere'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
@pytest.mark.usefixtures("workspace")
async def test_bad_usage_is_named_with_the_remedy_and_changes_nothing(
    recall: Recall, rows: Rows, arguments: tuple[str, ...], problem: str
) -> None:
    result = await recall(*arguments)
    assert result.status == 2 and problem in result.errors
    assert result.errors.count("\n") == 1
    assert rows.one("SELECT count(*) FROM jobs") == 0


# Purges --------------------------------------------------------------------------------------


@pytest.fixture
async def worker(resources: Resources) -> AsyncIterator[None]:
    """A worker that runs purges."""
    loop = JobLoop(
        resources.queue_pool, {"purge": partial(handle_purge, resources)}, resources.jitter
    )
    task = asyncio.create_task(loop.run())
    yield
    loop.stop()
    await task


@pytest.fixture
async def two_channels(ingest: Ingest) -> None:
    """A workspace with a message in #open and one in #closed, and another workspace."""
    await ingest.load(
        [
            b.header(),
            b.channels(b.slack_channel("C1", "open"), b.slack_channel("C2", "closed")),
            b.records(b.slack_record("one", 1), folder="open"),
            b.records(b.slack_record("two", 2), folder="closed"),
        ]
    )
    await ingest.load(b.slack_import(b.slack_record("three"), workspace_id="other"))


def messages(rows: Rows) -> list[tuple[str, str]]:
    return rows.all("SELECT workspace_id, text FROM messages ORDER BY posted_at")


@pytest.mark.usefixtures("two_channels", "worker")
async def test_a_channel_is_purged_by_its_name_and_the_report_is_printed(
    recall: Recall, rows: Rows
) -> None:
    result = await recall("purge", "--workspace", W, "--channel", "#closed", "--yes")
    assert result.status == 0
    assert result.output.startswith("Purged channel C2 of W in ")
    assert ["messages", "1"] in [line.split() for line in result.output.splitlines()]
    assert sorted(messages(rows)) == [(W, "one"), ("other", "three")]


@pytest.mark.usefixtures("two_channels", "worker")
async def test_a_workspace_is_purged_and_its_report_outlives_it(recall: Recall, rows: Rows) -> None:
    result = await recall("purge", "--workspace", W, "--yes", "--json")
    assert result.status == 0
    report = result.json
    assert (report["scope"], report["is_finished"]) == ("workspace", True)
    assert report["deleted"]["messages"] == 2
    assert messages(rows) == [("other", "three")]
    assert rows.all("SELECT workspace_id FROM workspaces") == [("other",)]


@pytest.mark.usefixtures("two_channels", "worker")
async def test_a_purge_that_was_given_up_earlier_is_no_failure_of_this_one(
    recall: Recall, rows: Rows
) -> None:
    rows.execute(
        "INSERT INTO jobs (workspace_id, job_id, kind, dedup_key, state, finished_at) "
        "VALUES ('W', 'j-old', 'purge', 'old', 'dead', now())"
    )
    result = await recall("purge", "--workspace", W, "--channel", "closed", "--yes")
    assert result.status == 0, result
    assert sorted(messages(rows)) == [(W, "one"), ("other", "three")]


@pytest.mark.usefixtures("two_channels")
async def test_a_purge_that_is_given_up_says_so(recall: Recall, rows: Rows) -> None:
    rows.execute(
        "INSERT INTO purge_reports (workspace_id, purge_id, scope, channel_id, hold_ts) "
        "VALUES ('W', 'p1', 'workspace', '', '')"
    )
    rows.execute(
        "INSERT INTO jobs (workspace_id, job_id, kind, dedup_key, state, finished_at) "
        "VALUES ('W', 'j1', 'purge', 'p1', 'dead', now())"
    )
    result = await recall("purge", "--workspace", W, "--yes")
    assert (result.status, result.output) == (1, "")
    assert "The purge failed: `recall jobs` shows why and retries it." in result.errors


@pytest.mark.parametrize(("typed", "is_purged"), [(W, True), ("y", False), ("", False)])
@pytest.mark.usefixtures("two_channels", "worker")
async def test_on_a_terminal_the_name_must_be_typed(
    recall: Recall, rows: Rows, typed: str, is_purged: bool
) -> None:
    keyboard, terminal = os.openpty()
    os.write(keyboard, f"{typed}\n".encode())
    result = await recall("purge", "--workspace", W, stdin=terminal)
    os.close(keyboard)
    os.close(terminal)
    assert "can not be undone" in result.errors
    assert result.status == (0 if is_purged else 2)
    assert (W in dict(messages(rows))) != is_purged


@pytest.mark.usefixtures("two_channels")
async def test_a_purge_that_was_given_up_is_told_with_the_way_to_look(
    recall: Recall, resources: Resources
) -> None:
    running = asyncio.create_task(recall("purge", "--workspace", W, "--yes"))
    jobs: list[queue.Job] = []
    async with asyncio.timeout(60):
        while not jobs:
            await asyncio.sleep(0.05)
            jobs = await queue.claim(resources.queue_pool, ("purge",))
    await queue.fail(resources.queue_pool, jobs[0], NextRun(8, None), "It broke.")
    result = await running
    assert result.status == 1
    assert result.errors.splitlines()[-1].startswith("The purge failed: `recall jobs`")
