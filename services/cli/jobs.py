"""``recall jobs``: background work of a workspace, the dead letters first."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence

from recall.ingest.v1 import jobs_pb2
from services.cli import as_json, render
from services.cli.connection import OK, Stack, UsageError
from services.cli.operate import STATUS_SECONDS, only_workspace
from services.cli.terminal import show

# The most that one list holds.
DEAD_LIMIT, OTHERS_LIMIT = 500, 100


async def run_jobs(options: argparse.Namespace, stack: Stack) -> int:
    """List what is dead, what runs and what waits, or retry a dead job."""
    if options.action == "retry" and not options.job:
        raise UsageError("JOB is missing: `recall jobs` shows the ids.")
    if options.action == "list" and options.job:
        raise UsageError("JOB goes with `recall jobs retry JOB`; `recall jobs` lists them all.")
    workspace = options.workspace or await only_workspace(stack)
    if options.action == "retry":
        return await _retry(options, stack, workspace)
    dead = await _listed(stack, workspace, ("DEAD",), DEAD_LIMIT)
    others = await _listed(stack, workspace, ("RUNNING", "READY"), OTHERS_LIMIT)
    others.sort(key=lambda job: job.state != jobs_pb2.JOB_STATE_RUNNING)
    if options.json:
        print(json.dumps([as_json.job(each) for each in (*dead, *others)], indent=2))
    else:
        is_cut = len(dead) == DEAD_LIMIT or len(others) == OTHERS_LIMIT
        show(render.jobs(workspace, (*dead, *others), is_cut))
    return OK


async def _retry(options: argparse.Namespace, stack: Stack, workspace: str) -> int:
    request = jobs_pb2.RetryJobRequest(workspace_id=workspace, job_id=options.job)
    reply = await stack.jobs.RetryJob(request, timeout=STATUS_SECONDS)
    if options.json:
        print(json.dumps(as_json.job(reply.job), indent=2))
    else:
        show(f"Job {reply.job.job_id} is ready again; `recall jobs` shows how it goes.")
    return OK


async def _listed(
    stack: Stack, workspace: str, states: Sequence[str], limit: int
) -> list[jobs_pb2.Job]:
    request = jobs_pb2.ListJobsRequest(
        workspace_id=workspace,
        states=[jobs_pb2.JobState.Value(f"JOB_STATE_{state}") for state in states],
        limit=limit,
    )
    return list((await stack.jobs.ListJobs(request, timeout=STATUS_SECONDS)).jobs)
