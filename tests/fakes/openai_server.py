"""A local server that speaks OpenAI's wire format, for the real client to talk to.

``/v1/responses`` (streamed or not) and ``/v1/embeddings`` (float and base64) answer what a test
scripted, one step a request; with nothing scripted they answer well. Every request is recorded.
Use it as a context manager and give its ``base_url`` to the client.
"""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self

from tests.fakes.openai_embeddings import embeddings_body, inputs_of, limit_error
from tests.fakes.openai_responses import (
    first_citable,
    frame,
    response_body,
    stream_events,
)
from tests.fakes.openai_steps import (
    Body,
    CutOff,
    HttpError,
    RawBody,
    Slow,
    Step,
    Vectors,
)

RESPONSES = "/v1/responses"
EMBEDDINGS = "/v1/embeddings"


@dataclass(frozen=True)
class RecordedRequest:
    """One request as it arrived; header names are in lower case."""

    path: str
    headers: Mapping[str, str]
    body: Body


class OpenAIServer:
    """The stand-in. Steps wait in one queue a path and are taken in order."""

    def __init__(self) -> None:
        self.requests: list[RecordedRequest] = []
        self.stopping = threading.Event()
        # A request for vectors with this word in any text is refused with 400, before any step.
        self.refused_word = ""
        self._steps: dict[str, deque[Step]] = {RESPONSES: deque(), EMBEDDINGS: deque()}
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
        self._http.daemon_threads = True
        self._http.fake = self  # type: ignore[attr-defined]
        self._thread = threading.Thread(
            target=self._http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
        )

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stopping.set()
        self._http.shutdown()
        self._http.server_close()

    @property
    def base_url(self) -> str:
        """Address for ``OPENAI_BASE_URL``."""
        return f"http://127.0.0.1:{self._http.server_address[1]}/v1"

    def respond(self, *steps: Step) -> None:
        """Append steps for ``/v1/responses``."""
        self._steps[RESPONSES].extend(steps)

    def embed(self, *steps: Step) -> None:
        """Append steps for ``/v1/embeddings``."""
        self._steps[EMBEDDINGS].extend(steps)

    def requests_to(self, path: str) -> list[RecordedRequest]:
        """The recorded requests of one path, oldest first."""
        return [request for request in self.requests if request.path == path]

    def next_step(self, request: RecordedRequest) -> Step:
        """Record a request and take its step; limits of the API come before any step."""
        self.requests.append(request)
        if request.path == EMBEDDINGS:
            refused = limit_error(inputs_of(request.body)) or self._refused(request)
            if refused:
                return refused
        waiting = self._steps[request.path]
        if waiting:
            return waiting.popleft()
        return Vectors() if request.path == EMBEDDINGS else first_citable(request.body)

    def _refused(self, request: RecordedRequest) -> HttpError | None:
        texts = map(str, inputs_of(request.body))
        if self.refused_word and any(self.refused_word in text for text in texts):
            return HttpError(400, "invalid_input", "A text can not be embedded.")
        return None


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path not in (RESPONSES, EMBEDDINGS):
            self._send_error(HttpError(404, None, f"Unknown path {self.path}."))
            return
        headers = {name.lower(): value for name, value in self.headers.items()}
        self._perform(self._fake.next_step(RecordedRequest(self.path, headers, body)), body)

    def log_message(self, format: str, *args: object) -> None:
        """Keep the test output quiet."""

    @property
    def _fake(self) -> OpenAIServer:
        fake: OpenAIServer = self.server.fake  # type: ignore[attr-defined]
        return fake

    def _perform(self, step: Step, body: Body) -> None:
        if isinstance(step, Slow):
            self._fake.stopping.wait(step.seconds)
            self._perform(step.then, body)
        elif isinstance(step, HttpError):
            self._send_error(step)
        elif isinstance(step, RawBody):
            self._send(step.status, step.content_type, step.body.encode(), {})
        elif isinstance(step, Vectors):
            self._send_json(200, embeddings_body(body, step), {})
        elif body.get("stream"):
            self._send_stream(step, body)
        else:
            reply = json.dumps(response_body(step, body)).encode()
            self._send(200, "application/json", reply, {}, cut=isinstance(step, CutOff))

    def _send_error(self, error: HttpError) -> None:
        detail = {
            "message": error.message,
            "type": "error",
            "param": None,
            "code": error.code,
        }
        self._send_json(error.status, {"error": detail}, error.headers)

    def _send_json(self, status: int, body: Body, headers: Mapping[str, str]) -> None:
        self._send(status, "application/json", json.dumps(body).encode(), headers)

    def _send(
        self,
        status: int,
        content_type: str,
        body: bytes,
        headers: Mapping[str, str],
        *,
        cut: bool = False,
    ) -> None:
        try:
            self.send_response(status)
            self.send_header("Content-Type", content_type)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("x-request-id", f"req_{len(self._fake.requests)}")
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body[: len(body) // 2] if cut else body)
        except ConnectionError:
            cut = True  # the client gave up waiting, which is what a slow step is for
        self.close_connection = self.close_connection or cut

    def _send_stream(self, step: Step, body: Body) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for number, event in enumerate(stream_events(step, body)):
            data = frame(event, number)
            self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        if isinstance(step, CutOff):
            self.close_connection = True
        else:
            self.wfile.write(b"0\r\n\r\n")
