"""A local server that speaks the Decisions API's wire format, for the real client to talk to.

Use it as a context manager and give its ``base_url`` to the client, or run it by itself:

    python -m tests.fakes.decisions_server --port 7490 --jev overloaded --luna ok

Each model has a mode (``MODES``), "ok" at first. Every request is recorded. The key must be
``Bearer`` something; a body that the real API would refuse is refused before any mode.
"""

from __future__ import annotations

import argparse
import json
import socket
import struct
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self

from tests.fakes.decisions_modes import MODES, Mode, Output
from tests.fakes.decisions_replies import (
    MODELS,
    Body,
    ScoreFunction,
    error_body,
    generation_id,
    invalid_request,
    model_named,
    reply_body,
    shared_words,
)

PATH = "/api/alpha/decisions"
CHAT_PATH = "/api/v1/chat/completions"
TRICKLE_SECONDS = 0.2


@dataclass(frozen=True)
class RecordedRequest:
    """One request as it arrived; header names are in lower case."""

    model: str
    headers: Mapping[str, str]
    raw: bytes
    body: Body


class DecisionsServer:
    """The stand-in. ``score`` judges a message for a question, from 0 to 3."""

    def __init__(self, score: ScoreFunction = shared_words, port: int = 0) -> None:
        self.requests: list[RecordedRequest] = []
        self.stopping = threading.Event()
        self._score = score
        self._arrival = threading.Condition()
        self._modes: dict[str, Mode] = {name: MODES["ok"] for name in MODELS}
        self._http = ThreadingHTTPServer(("127.0.0.1", port), _Handler)
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
        """Address for ``RECALL_DECISIONS_URL``."""
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    def behave(self, **modes: str | Mode) -> None:
        """Set the mode of ``jev`` or ``luna``, by name or as a function."""
        for name, mode in modes.items():
            self._modes[name] = MODES[mode] if isinstance(mode, str) else mode

    def asked(self) -> list[str]:
        """The models asked so far, ``jev`` or ``luna``, oldest first."""
        return [request.model for request in self.requests]

    def wait_for_requests(self, count: int) -> None:
        """Block until ``count`` requests have arrived in all."""
        with self._arrival:
            self._arrival.wait_for(lambda: len(self.requests) >= count)

    def answer(self, headers: Mapping[str, str], raw: bytes) -> Output:
        """The output for one request to the Decisions path."""
        if not headers.get("authorization", "").startswith("Bearer "):
            return _error(error_body(401, "No auth credentials found", "authentication"))
        request = _parsed(raw)
        refused = invalid_request(request)
        if refused:
            return _error(refused)
        name = model_named(request["model"]) or ""
        with self._arrival:
            self.requests.append(RecordedRequest(name, headers, raw, request))
            self._arrival.notify_all()
        reply = reply_body(request, MODELS[name], self._score, len(self.requests))
        return self._modes[name](reply)


def scripted(scores: Sequence[float]) -> ScoreFunction:
    """Scores by position: the text of message n must end in its number, from 1."""
    return lambda _, message: scores[int(message["text"].split()[-1]) - 1]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        headers = {name.lower(): value for name, value in self.headers.items()}
        if self.path == PATH:
            self._deliver(self._fake.answer(headers, raw))
        else:
            self._deliver(_elsewhere(self.path, raw))

    def log_message(self, format: str, *args: object) -> None:
        """Keep the test output quiet."""

    @property
    def _fake(self) -> DecisionsServer:
        fake: DecisionsServer = self.server.fake  # type: ignore[attr-defined]
        return fake

    def _deliver(self, output: Output) -> None:
        self.close_connection = output.delivery != "whole"
        if output.delivery == "reset":
            self._reset()
            return
        if output.delivery == "slow":
            self._fake.stopping.wait()
        try:
            self._send_head(output)
            self._send_body(output)
        except ConnectionError:
            self.close_connection = True  # the client gave up, which is what slowness is for

    def _send_head(self, output: Output) -> None:
        self.send_response(output.status)
        self.send_header("Content-Type", output.content_type)
        self.send_header("Content-Length", str(len(output.body)))
        self.send_header("X-Generation-Id", generation_id(len(self._fake.requests)))
        for name, value in output.headers.items():
            self.send_header(name, value)
        self.end_headers()

    def _send_body(self, output: Output) -> None:
        if output.delivery == "cut":
            self.wfile.write(output.body[: len(output.body) // 2])
        elif output.delivery == "trickle":
            for position in range(len(output.body)):
                self.wfile.write(output.body[position : position + 1])
                if self._fake.stopping.wait(TRICKLE_SECONDS):
                    return
        else:
            self.wfile.write(output.body)

    def _reset(self) -> None:
        # No time to linger: closing sends RST instead of FIN.
        linger = struct.pack("ii", 1, 0)
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        self.connection.close()


def _parsed(raw: bytes) -> Body:
    try:
        parsed: Body = json.loads(raw)
    except ValueError:
        return {}
    return parsed


def _error(body: Body) -> Output:
    return Output(body["error"]["code"], json.dumps(body).encode())


def _elsewhere(path: str, raw: bytes) -> Output:
    """What other paths answer; the chat endpoint knows decision models and says where to go."""
    model = _parsed(raw).get("model")
    if path == CHAT_PATH and model_named(model):
        message = (
            f"{model} is a decisions model and cannot be used with the chat/completions "
            "endpoint. Use the /api/alpha/decisions endpoint instead."
        )
        return _error({"error": {"message": message, "code": 400}})
    return _error(error_body(404, f"No route {path}", "not_found"))


def main() -> None:
    """Serve on a port until interrupted."""
    parser = argparse.ArgumentParser(prog="python -m tests.fakes.decisions_server")
    parser.add_argument("--port", type=int, default=7490)
    for name in MODELS:
        parser.add_argument(f"--{name}", choices=sorted(MODES), default="ok")
    chosen = parser.parse_args()
    with DecisionsServer(port=chosen.port) as server:
        server.behave(jev=chosen.jev, luna=chosen.luna)
        print(f"RECALL_DECISIONS_URL={server.base_url}", flush=True)
        try:
            server.stopping.wait()
        except KeyboardInterrupt:
            print("stopped")


if __name__ == "__main__":
    main()
