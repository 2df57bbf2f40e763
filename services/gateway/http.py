"""The demo page's listener: one workspace's public channels, for anybody, whatever they send.

The query context is built here from the configuration; a request only brings a question and what
narrows it. There is no gRPC on this listener.
"""

from __future__ import annotations

import asyncio
import hashlib
import secrets
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import Any, TypeVar

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Receive, Scope, Send

from recall.gateway.v1 import gateway_pb2
from recall.retrieve.v1 import retrieve_pb2
from services.gateway.ask import ASK_SECONDS, SEARCH_SECONDS, Question, ask
from services.gateway.clients import Stages, reach
from services.gateway.context import public_context
from services.gateway.deadline import Deadline, deadline_in
from services.gateway.directory import Directory
from services.gateway.first_view import first_view
from services.gateway.http_guard import Guard, Rules, error_response
from services.gateway.http_requests import Asked, parse_ask, parse_search, read_body
from services.gateway.limits import Gate, TokenBuckets, client_key
from services.gateway.render import (
    answer_json,
    call_error_json,
    error_json,
    event,
    http_status,
    progress_json,
    search_json,
    thread_json,
)
from services.runtime import call as calls
from services.runtime.errors import CallError, invalid

WEB = Path(__file__).parent / "web"
READ_SECONDS = 10.0

T = TypeVar("T")


@dataclass(frozen=True)
class Limits:
    """What the page bears. Rates are a client's; seconds are a request's."""

    asks_per_minute: float = 20
    asks_at_once: int = 8
    asks_burst: int = 10
    reads_per_minute: float = 240
    reads_burst: int = 60
    wait_seconds: float = 5.0
    body_seconds: float = 10.0
    # More than a whole ask, so that its own report comes first.
    request_seconds: float = ASK_SECONDS + 15


@dataclass(frozen=True)
class Demo:
    """What the page shows and through what."""

    stages: Stages
    directory: Directory
    workspace_id: str
    clock: Callable[[], float]
    limits: Limits = field(default_factory=Limits)
    allowed_hosts: tuple[str, ...] = ()


def create_app(demo: Demo, slack_routes: Sequence[Route] = ()) -> ASGIApp:
    """The whole listener as an ASGI app. Without routes of Slack its doors do not exist (404)."""
    page = _Page(demo)
    routes = [
        *slack_routes,
        Route("/", page.index),
        Route("/api/ask", page.ask, methods=["POST"]),
        Route("/api/search", page.search),
        Route("/api/thread", page.thread),
        Route("/api/samples", page.samples),
        Route("/healthz", page.healthz),
        Route("/readyz", page.readyz),
        Mount("/static", StaticFiles(directory=WEB)),
    ]
    handlers: dict[Any, Any] = {
        CallError: _call_failed,
        HTTPException: _refused,
        Exception: _defect,
    }
    limits = demo.limits
    rules = Rules(
        allowed_hosts=demo.allowed_hosts,
        asks=TokenBuckets(limits.asks_per_minute, limits.asks_burst, demo.clock),
        reads=TokenBuckets(limits.reads_per_minute, limits.reads_burst, demo.clock),
        seconds=limits.request_seconds,
    )
    return Guard(Starlette(routes=routes, exception_handlers=handlers), rules, demo.clock)


class _Page:
    """The endpoints. Each translates, calls, and translates back."""

    def __init__(self, demo: Demo) -> None:
        self._demo = demo
        self._gate = Gate(demo.limits.asks_at_once, demo.limits.wait_seconds)
        # Providers see a hash of the client that can not be turned back into its address.
        self._salt = secrets.token_bytes(16)

    async def index(self, request: Request) -> Response:
        """The page."""
        return FileResponse(WEB / "index.html")

    async def ask(self, request: Request) -> ASGIApp:
        """Server-sent steps, then the answer; the answer alone for ``Accept: application/json``."""
        if request.headers.get("content-type", "").split(";")[0].strip() != "application/json":
            raise HTTPException(415, "Send the question as application/json.")
        asked = parse_ask(await read_body(request, self._demo.limits.body_seconds))
        question = await self._question(asked, request)
        deadline = self._deadline(ASK_SECONDS)
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(self._gate.entered())
            if "application/json" in request.headers.get("accept", ""):
                answer = await _while_connected(request, self._answer(question, deadline))
                return JSONResponse(answer_json(answer))
            events = _stream(question, self._demo.stages, deadline)
            return _EventStream(events, stack.pop_all())

    async def search(self, request: Request) -> Response:
        """Messages without an answer."""
        asked, limit = parse_search(request.query_params)
        wire = retrieve_pb2.SearchRequest(
            context=await public_context(self._demo.workspace_id, self._demo.directory),
            question=asked.question,
            filter=asked.narrowing,
            limit=limit,
        )
        found = await reach("retrieve", self._demo.stages.retriever.Search, wire, SEARCH_SECONDS)
        return JSONResponse(search_json(found))

    async def thread(self, request: Request) -> Response:
        """The thread around one message."""
        message_id = request.query_params.get("message_id", "")
        if not message_id:
            raise invalid("message_id", "name the message whose thread shall be opened.")
        wire = retrieve_pb2.ReadThreadRequest(
            context=await public_context(self._demo.workspace_id, self._demo.directory),
            message_id=message_id,
        )
        thread = await reach("retrieve", self._demo.stages.retriever.ReadThread, wire, READ_SECONDS)
        return JSONResponse(thread_json(thread.messages, message_id))

    async def samples(self, request: Request) -> Response:
        """What the page shows before the first question."""
        demo = self._demo
        return JSONResponse(await first_view(demo.workspace_id, demo.stages, demo.directory))

    async def healthz(self, request: Request) -> Response:
        """The process answers."""
        return JSONResponse({"status": "ok"})

    async def readyz(self, request: Request) -> Response:
        """Questions can be answered: retrieve serves. Model providers do not count."""
        if await self._demo.stages.is_serving("retrieve", 1.0):
            return JSONResponse({"status": "ready"})
        return JSONResponse(
            error_json("STAGE_UNAVAILABLE", "The retrieve stage runs but is not ready."), 503
        )

    async def _question(self, asked: Asked, request: Request) -> Question:
        return Question(
            text=asked.question,
            context=await public_context(self._demo.workspace_id, self._demo.directory),
            narrowing=asked.narrowing,
            ask_id=calls.request_id(),
            asker=self._asker(request),
        )

    async def _answer(self, question: Question, deadline: Deadline) -> gateway_pb2.Answer:
        events = [found async for found in ask(question, self._demo.stages, deadline)]
        answer = events[-1]
        assert isinstance(answer, gateway_pb2.Answer)
        return answer

    def _deadline(self, seconds: float) -> Deadline:
        return deadline_in(self._demo.clock, seconds)

    def _asker(self, request: Request) -> str:
        address = client_key(request.client.host if request.client else "")
        return hashlib.blake2b(address.encode(), key=self._salt, digest_size=16).hexdigest()


class _EventStream(StreamingResponse):
    """Server-sent events. Whatever becomes of it, its place behind the gate is given back."""

    def __init__(self, events: AsyncIterator[bytes], place: AsyncExitStack) -> None:
        super().__init__(events, media_type="text/event-stream")
        self._place = place

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with self._place:
            await super().__call__(scope, receive, send)


async def _stream(question: Question, stages: Stages, deadline: Deadline) -> AsyncIterator[bytes]:
    try:
        async with aclosing(ask(question, stages, deadline)) as events:
            async for found in events:
                if isinstance(found, gateway_pb2.Progress):
                    yield event("step", progress_json(found))
                else:
                    yield event("answer", answer_json(found))
    except CallError as error:
        yield event("error", call_error_json(error))


async def _while_connected(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """The work's result. A client that leaves ends the work and every call below it."""
    working = asyncio.create_task(work)
    leaving = asyncio.create_task(_disconnected(request))
    try:
        await asyncio.wait((working, leaving), return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise HTTPException(499, "The client left.")
        return await working
    finally:
        for task in (working, leaving):
            task.cancel()
        await asyncio.gather(working, leaving, return_exceptions=True)


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def _call_failed(_: Request, error: CallError) -> Response:
    return error_response(http_status(error), error)


async def _refused(_: Request, refusal: HTTPException) -> Response:
    status = refusal.status_code
    reason = _REASONS.get(status, "INVALID_REQUEST")
    return JSONResponse(error_json(reason, refusal.detail), status, refusal.headers)


async def _defect(_: Request, __: Exception) -> Response:
    message = f"Internal error. The log has the details under request id {calls.request_id()}."
    return JSONResponse(error_json("INTERNAL", message), HTTPStatus.INTERNAL_SERVER_ERROR)


_REASONS = {
    404: "NOT_FOUND",
    405: "METHOD_NOT_ALLOWED",
    408: "TOO_SLOW",
    413: "BODY_TOO_LARGE",
    415: "NOT_JSON",
    499: "CLIENT_LEFT",
}
