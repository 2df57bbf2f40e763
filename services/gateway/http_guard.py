"""What stands around every HTTP request: names, sites, rates, time, headers, one log line."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable
from dataclasses import dataclass

import structlog
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from services.gateway.limits import TokenBuckets, client_key, too_many
from services.gateway.render import call_error_json, dumped, error_json
from services.runtime.call import Call
from services.runtime.errors import CallError
from services.runtime.interceptors import REQUEST_ID, call_in_progress

# Nothing but our own files; no inline script or style; nobody may frame the page.
_HEADERS = {
    "content-security-policy": (
        "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; "
        "frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}
_API = "/api/"
_ASK = "/api/ask"
_PROBES = ("/healthz", "/readyz")
# Slack signs what it sends, and calls under the public name of whoever installed it.
_SLACK = "/slack/"
# Agents may have a collection built, which waits for its vectors; they are known callers.
_AGENTS = "/mcp"
_AGENT_SECONDS = 660.0
_OWN_SITE = ("same-origin", "none", "")

log = structlog.get_logger("http")


@dataclass(frozen=True)
class Rules:
    """What a request must keep to. ``seconds`` bounds a whole request, slow clients included."""

    allowed_hosts: tuple[str, ...]
    asks: TokenBuckets
    reads: TokenBuckets
    seconds: float


class Guard:
    """ASGI middleware around the whole app, its error pages included."""

    def __init__(self, app: ASGIApp, rules: Rules, clock: Callable[[], float]) -> None:
        self._app = app
        self._rules = rules
        self._clock = clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or refuse it."""
        if scope["type"] != "http":
            return
        reply = _Reply(send, str(uuid.uuid4()), scope["path"])
        began = self._clock()
        seconds = _AGENT_SECONDS if scope["path"] == _AGENTS else self._rules.seconds
        call = Call(reply.request_id, None, began + seconds)
        with structlog.contextvars.bound_contextvars(request_id=reply.request_id):
            try:
                async with asyncio.timeout(seconds):
                    with call_in_progress(call):
                        app = self._refusal(scope) or self._app
                        await app(scope, receive, reply.send)
            except TimeoutError:
                await self._too_slow(scope, receive, reply)
            finally:
                milliseconds = round((self._clock() - began) * 1000, 1)
                log.info(
                    "served",
                    method=scope["method"],
                    path=scope["path"][:100],
                    status=reply.status,
                    milliseconds=milliseconds,
                )

    def _refusal(self, scope: Scope) -> Response | None:
        headers, path = Headers(scope=scope), scope["path"]
        if path in _PROBES or path.startswith(_SLACK):
            return None
        if not self._is_allowed_host(headers.get("host", "")):
            return _refused(
                421,
                "HOST_NOT_ALLOWED",
                "The page is not served under this name. Use localhost, or list the name in "
                "RECALL_GATEWAY_ALLOWED_HOSTS.",
            )
        if path.startswith(_API) and headers.get("sec-fetch-site", "") not in _OWN_SITE:
            return _refused(403, "OTHER_SITE", "Only this site's own page may ask.")
        return self._rate_refusal(scope)

    def _rate_refusal(self, scope: Scope) -> Response | None:
        path = scope["path"]
        if not path.startswith(_API):
            return None
        buckets = self._rules.asks if path == _ASK else self._rules.reads
        wait = buckets.take(client_key((scope.get("client") or ("",))[0]))
        return error_response(429, too_many(wait)) if wait else None

    def _is_allowed_host(self, host: str) -> bool:
        name = host.lower().rsplit(":", 1)[0] if not host.endswith("]") else host.lower()
        return not self._rules.allowed_hosts or name.strip("[]") in self._rules.allowed_hosts

    async def _too_slow(self, scope: Scope, receive: Receive, reply: _Reply) -> None:
        # A reply that has begun is cut off by the server: its length or its end is missing.
        if not reply.status:
            response = _refused(504, "DEADLINE_TOO_SHORT", "This took too long. Ask again.")
            await response(scope, receive, reply.send)


class _Reply:
    """Adds the headers of every reply and remembers its status (0 while it has not begun)."""

    def __init__(self, send: Send, request_id: str, path: str) -> None:
        self._send = send
        self._caching = "no-cache" if not path.startswith(_API) else "no-store"
        self.request_id = request_id
        self.status = 0

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = MutableHeaders(scope=message)
            headers.update(_HEADERS)
            headers[REQUEST_ID] = self.request_id
            headers["cache-control"] = self._caching
        await self._send(message)


def error_response(status: int, error: CallError) -> Response:
    """A failed call as JSON, with Retry-After where waiting helps."""
    response = _json(status, dumped(call_error_json(error)))
    if error.retry_after_seconds is not None:
        response.headers["retry-after"] = str(max(1, round(error.retry_after_seconds)))
    return response


def _refused(status: int, reason: str, message: str) -> Response:
    return _json(status, dumped(error_json(reason, message)))


def _json(status: int, body: str) -> Response:
    return Response(body, status, media_type="application/json")
