"""One command of Slack, from what was recorded to one visible answer."""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import UTC, datetime

import structlog
from google.protobuf import json_format

from recall.corpus.v1 import corpus_pb2
from recall.ingest.v1 import jobs_pb2, slack_pb2
from services.corpus import instant
from services.gateway.clients import reach
from services.gateway.slack import answering, commands, sharing
from services.gateway.slack.asker import Asker, Desk, query_context
from services.gateway.slack.blocks import correction_view, escape
from services.gateway.slack.deliver import RECORD_SECONDS, Errand, deliver
from services.gateway.slack.events import (
    ASK_AGAIN,
    HELPFUL,
    MARK_CORRECTED,
    NOT_HELPFUL,
    SHARE,
    SUMMARISE_THREAD,
)
from services.gateway.slack.posting import Place, show_status
from services.gateway.slack.replies import Reply, told
from services.gateway.slack.thread_question import Talk
from services.gateway.slack.web_api import SlackError, SlackRefusedError
from services.runtime.errors import CallError

# So long a person is left to wait for a stage that is away before they are told.
PATIENCE_SECONDS = 60.0

VIEW_OPENED_BEFORE = "exchanged_trigger_id"
TOO_LATE = "That took too long. Choose “Mark as corrected by…” once more, please."
AWAY = "I can not answer just now: {cause} Nothing is lost; please ask again in a few minutes."

_DOORS = slack_pb2.CommandDoor
_EMPTY = corpus_pb2.QueryContext()

log = structlog.get_logger("command")


class UnreadableCommandError(Exception):
    """A job holds no command that this version understands."""


def read_command(payload: bytes) -> slack_pb2.SlackCommand:
    """The command of a job's payload. Raises UnreadableCommandError."""
    try:
        value = json.loads(payload)
        command = slack_pb2.SlackCommand()
        json_format.ParseDict(value, command, ignore_unknown_fields=True)
    except (ValueError, json_format.ParseError):
        raise UnreadableCommandError("The job's payload is no command.") from None
    if not command.user_id:
        raise UnreadableCommandError("The job's payload names no person.")
    return command


async def run_command(job: jobs_pb2.ClaimedJob, desk: Desk) -> None:
    """Answer a claimed command. Raises CallError, SlackError and UnreadableCommandError."""
    command = read_command(job.payload_json)
    client = await desk.installations.client(job.workspace_id)
    asker = Asker(job.workspace_id, command.user_id, client)
    errand = Errand(job, asker, place_of(command))
    if _opens_view(command) and await _open_view(errand, command):
        return
    try:
        reply, context = await _reply(errand, command, desk)
    except CallError as error:
        if not await _is_out_of_patience(job, desk):
            raise
        log.warning("told that a stage is away", job=job.job_id, cause=error.reason_name)
        reply, context = told(AWAY.format(cause=escape(error.message))), _EMPTY
    await deliver(errand, reply, context, desk)


def place_of(command: slack_pb2.SlackCommand) -> Place:
    """Where the answer goes."""
    thread_ts, channel_id = command.thread_ts, command.channel_id
    if command.door == _DOORS.COMMAND_DOOR_DIRECT:
        # In the agent view every question is the root of its conversation.
        thread_ts = thread_ts or command.message_ts
    if command.door == _DOORS.COMMAND_DOOR_VIEW:
        channel_id = command.value.partition(":")[0]
    ours = command.door in (_DOORS.COMMAND_DOOR_BUTTON, _DOORS.COMMAND_DOOR_DIRECT)
    is_direct = ours and channel_id.startswith("D")
    return Place(
        channel_id=channel_id,
        person_id=command.user_id,
        thread_ts=thread_ts,
        response_url="" if is_direct else command.response_url,
    )


async def _reply(
    errand: Errand, command: slack_pb2.SlackCommand, desk: Desk
) -> tuple[Reply, corpus_pb2.QueryContext]:
    """The reply, and the rights that it was made under."""
    if command.door == _DOORS.COMMAND_DOOR_BUTTON and command.action_id != ASK_AGAIN:
        return await _pressed(errand, command, desk), _EMPTY
    if command.door == _DOORS.COMMAND_DOOR_DIRECT:
        # Only a courtesy: an answer matters more than a line that says it is coming.
        with suppress(SlackError):
            await show_status(errand.asker.client, errand.place)
    context = await query_context(errand.asker, desk)
    return await _answered(errand.asker, context, command, desk), context


async def _answered(
    asker: Asker, context: corpus_pb2.QueryContext, command: slack_pb2.SlackCommand, desk: Desk
) -> Reply:
    if command.door == _DOORS.COMMAND_DOOR_VIEW:
        return await _corrected(asker, context, command, desk)
    if command.door == _DOORS.COMMAND_DOOR_SHORTCUT:
        if command.action_id == MARK_CORRECTED:
            return told(TOO_LATE)
        pointed_at = asker.message_id(command.channel_id, command.message_ts)
        request = answering.Request(asker, context, "", pointed_at)
        return await answering.summarise_thread(request, desk)
    text = command.value if command.action_id == ASK_AGAIN else command.text
    in_thread = command.door == _DOORS.COMMAND_DOOR_MENTION and command.thread_ts
    thread_id = asker.message_id(command.channel_id, command.thread_ts) if in_thread else ""
    request = answering.Request(asker, context, text, thread_id, _talk(command))
    return await answering.answer(request, desk)


def _talk(command: slack_pb2.SlackCommand) -> Talk | None:
    """The direct conversation that a message goes on with; None for one that begins it."""
    goes_on = command.thread_ts and command.thread_ts != command.message_ts
    if command.door != _DOORS.COMMAND_DOOR_DIRECT or not goes_on:
        return None
    return Talk(command.channel_id, command.thread_ts, command.message_ts)


async def _pressed(errand: Errand, command: slack_pb2.SlackCommand, desk: Desk) -> Reply:
    if command.action_id == SHARE:
        return await sharing.share(errand, command.value, desk)
    if command.action_id in (HELPFUL, NOT_HELPFUL):
        return await sharing.judge(errand, command.value, command.action_id == HELPFUL, desk)
    return told(commands.HELP)


async def _corrected(
    asker: Asker, context: corpus_pb2.QueryContext, command: slack_pb2.SlackCommand, desk: Desk
) -> Reply:
    channel_id, _, ts = command.value.partition(":")
    links = commands.linked_messages(" ".join(command.fields.values()))
    if len(links) != 1:
        return told(commands.HOW_TO_CORRECT)
    older, newer = asker.message_id(channel_id, ts), asker.message_id(*links[0])
    return await answering.correct(asker, context, older, newer, desk)


def _opens_view(command: slack_pb2.SlackCommand) -> bool:
    shortcut = command.door == _DOORS.COMMAND_DOOR_SHORTCUT
    return shortcut and command.action_id not in ("", SUMMARISE_THREAD)


async def _open_view(errand: Errand, command: slack_pb2.SlackCommand) -> bool:
    """Open the modal of a correction. False: Slack's three seconds are over."""
    view = correction_view(command.channel_id, command.message_ts)
    try:
        await errand.asker.client.call("views.open", trigger_id=command.trigger_id, view=view)
    except SlackRefusedError as refused:
        return refused.code == VIEW_OPENED_BEFORE
    return True


async def _is_out_of_patience(job: jobs_pb2.ClaimedJob, desk: Desk) -> bool:
    """Whether the person has waited long enough to be told. Raises CallError without ingest."""
    request = jobs_pb2.GetJobRequest(workspace_id=job.workspace_id, job_id=job.job_id)
    found = await reach("ingest", desk.stages.jobs.GetJob, request, RECORD_SECONDS)
    waited = datetime.now(UTC) - instant(found.job.created_at)
    return waited.total_seconds() > PATIENCE_SECONDS
