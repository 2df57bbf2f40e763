"""Slack's doors on the HTTP listener: verify, record, acknowledge. Nothing else happens here.

No model, no search and no call to Slack stands between a delivery and its acknowledgement.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from urllib.parse import parse_qsl

import grpc
import structlog
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from recall.ingest.v1 import slack_pb2
from services.gateway.clients import Stages
from services.gateway.http_requests import read_body
from services.gateway.slack.events import (
    Challenge,
    Delivery,
    Ignored,
    UnreadableError,
    read_events_body,
    read_interaction,
    read_slash_command,
)
from services.gateway.slack.record import record
from services.gateway.slack.signature import refusal
from services.runtime.errors import CallError

MOST_BODY_BYTES = 1024 * 1024
BODY_SECONDS = 3.0

LOOKING = "Looking…"
TRY_AGAIN = "Recall could not take this down just now. Please try again in a minute."
NOT_INSTALLED = (
    "Recall does not know this workspace. Ask an admin to install it again, then try once more."
)

log = structlog.get_logger("slack")


@dataclass(frozen=True)
class Door:
    """What verifies a request. ``now`` is in seconds since 1970."""

    signing_secret: str
    stages: Stages
    now: Callable[[], float]


class _Doors:
    """The endpoints. Each reads, records, and says so in the words its door understands."""

    def __init__(self, door: Door) -> None:
        self._door = door

    async def events(self, request: Request) -> Response:
        """An event, or the challenge of the moment when the address is entered."""
        body = await self._genuine_body(request)
        if isinstance(body, Response):
            return body
        try:
            delivery = read_events_body(body)
        except UnreadableError as error:
            return _unreadable(error)
        if isinstance(delivery, Challenge):
            return PlainTextResponse(delivery.text)
        try:
            await self._recorded(delivery)
        except CallError as error:
            return _event_refused(error)
        return Response(status_code=200)

    async def commands(self, request: Request) -> Response:
        """A slash command. Slack does not send it again, so a failure is told to the person."""
        body = await self._genuine_body(request)
        if isinstance(body, Response):
            return body
        try:
            delivery = read_slash_command(_form(body))
            outcome = await self._recorded(delivery)
        except UnreadableError as error:
            return _unreadable(error)
        except CallError:
            return _only_to_them(TRY_AGAIN)
        ignored = outcome == slack_pb2.RECORDED_IGNORED
        return _only_to_them(NOT_INSTALLED if ignored else LOOKING)

    async def interactions(self, request: Request) -> Response:
        """A button, a shortcut or a submitted view."""
        body = await self._genuine_body(request)
        if isinstance(body, Response):
            return body
        try:
            payload = json.loads(_form(body).get("payload", ""))
            delivery = read_interaction(payload)
        except (ValueError, RecursionError) as error:
            return _unreadable(error)
        try:
            await self._recorded(delivery)
        except CallError:
            return _interaction_refused(payload)
        return Response(status_code=200)

    async def _genuine_body(self, request: Request) -> bytes | Response:
        """The body as it arrived, or the refusal of a request that Slack did not sign."""
        body = await read_body(request, BODY_SECONDS, MOST_BODY_BYTES)
        headers = request.headers
        found = refusal(
            self._door.signing_secret,
            headers.get("x-slack-request-timestamp", ""),
            headers.get("x-slack-signature", ""),
            body,
            self._door.now(),
        )
        if found is None:
            return body
        log.warning("request refused", path=request.url.path, cause=found.name.lower())
        return PlainTextResponse("The request is not signed by Slack.", 401)

    async def _recorded(self, delivery: Delivery) -> slack_pb2.Recorded.ValueType:
        if isinstance(delivery, Ignored | Challenge):
            return slack_pb2.RECORDED_DUPLICATE
        return await record(delivery, self._door.stages)


def slack_routes(door: Door) -> Sequence[Route]:
    """The routes of an installation that Slack reaches over HTTP."""
    doors = _Doors(door)
    return (
        Route("/slack/events", doors.events, methods=["POST"]),
        Route("/slack/commands", doors.commands, methods=["POST"]),
        Route("/slack/interactions", doors.interactions, methods=["POST"]),
    )


def _form(body: bytes) -> dict[str, str]:
    try:
        return dict(parse_qsl(body.decode("utf-8"), keep_blank_values=True, max_num_fields=100))
    except ValueError:
        raise UnreadableError("the body is not a form") from None


def _unreadable(error: Exception) -> Response:
    cause = str(error) if isinstance(error, UnreadableError) else "payload is not JSON"
    log.warning("delivery unreadable", cause=cause)
    # The same bytes would be as unreadable the next time.
    return PlainTextResponse(f"Unreadable: {cause}.", 400, {"x-slack-no-retry": "1"})


def _event_refused(error: CallError) -> Response:
    if error.code is grpc.StatusCode.INVALID_ARGUMENT:
        return _unreadable(UnreadableError("ingest refuses the envelope"))
    return PlainTextResponse("The event could not be recorded. Send it again.", 503)


def _only_to_them(text: str) -> Response:
    return JSONResponse({"response_type": "ephemeral", "text": text})


def _interaction_refused(payload: dict[str, object]) -> Response:
    """Slack marks a button or shortcut that got no 2xx; a view says it at its field."""
    view = payload.get("view")
    if payload.get("type") != "view_submission" or not isinstance(view, dict):
        return PlainTextResponse(TRY_AGAIN, 503)
    fields = [
        block["block_id"]
        for block in view.get("blocks") or ()
        if isinstance(block, dict) and block.get("type") == "input" and block.get("block_id")
    ]
    return JSONResponse({"response_action": "errors", "errors": dict.fromkeys(fields, TRY_AGAIN)})
