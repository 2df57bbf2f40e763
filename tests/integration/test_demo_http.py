"""The page's listener over real HTTP: what it shows, what it refuses, what it never believes."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from recall.gateway.v1 import gateway_pb2, gateway_pb2_grpc
from recall.ingest.v1 import ingest_pb2
from services.gateway.directory import Directory
from services.gateway.grpc_service import SERVICE_NAME, RecallService
from services.gateway.http import WEB, Demo, Limits, create_app
from services.gateway.http_server import BoundedProtocol, bind, serving_http
from services.runtime.callers import Callers
from services.runtime.client import Peer
from services.runtime.server import Listener, PortTakenError, Servicers, serving
from tests.scripted_stages import Script, ScriptedRetrieve, channel, failing, hang, message, served

FIRST = message(1, "The deploy window is Tuesday.")
SECOND = message(2, "The deploy window moved to Thursday.", author="Bo", root=1)
SECRET = message(3, "The deploy budget is halved.", channel="leads")
LOOPBACK = Listener("127.0.0.1", 0)
WORDS = "When is the deploy window?"
QUESTION = {"question": WORDS}
JSON_ONLY = {"accept": "application/json"}

Serve = Callable[..., AbstractAsyncContextManager[httpx.AsyncClient]]


class Hasty(BoundedProtocol):
    """The same protocol with little patience."""

    header_seconds = 0.3
    unread_seconds = 0.3


@pytest.fixture
def script() -> Script:
    """Two public messages and a private one."""
    return Script(ScriptedRetrieve([FIRST, SECOND, SECRET]))


@pytest.fixture
def page(script: Script, callers: Callers) -> Serve:
    """A client of the page before the script's stages."""

    @asynccontextmanager
    async def serve_page(
        absent: tuple[str, ...] = (),
        limits: Limits | None = None,
        workspace_id: str = "beacon",
        protocol: type[BoundedProtocol] = BoundedProtocol,
    ) -> AsyncIterator[httpx.AsyncClient]:
        async with served(script, callers, absent) as stages:
            directory = Directory(stages, time.monotonic, keep_seconds=0)
            demo = Demo(
                stages,
                directory,
                workspace_id,
                time.monotonic,
                limits or Limits(),
                ("127.0.0.1", "localhost"),
            )
            async with (
                serving_http(create_app(demo), LOOPBACK, protocol=protocol) as port,
                httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=20) as client,
            ):
                yield client

    return serve_page


def events_of(text: str) -> list[tuple[str, dict[str, Any]]]:
    frames = re.findall(r"event: (\w+)\ndata: (.*)\n\n", text)
    return [(name, json.loads(data)) for name, data in frames]


async def test_an_ask_streams_its_steps_and_then_one_answer(page: Serve) -> None:
    async with page() as client:
        reply = await client.post("/api/ask", json=QUESTION)
    events = events_of(reply.text)
    assert reply.headers["content-type"].startswith("text/event-stream")
    assert [data.get("step") for _, data in events[:-1]] == [
        "searching",
        "reranking",
        "writing",
        "checking",
    ]
    name, answer = events[-1]
    assert (name, answer["outcome"]) == ("answer", "answered")
    assert [c["message_id"] for c in answer["citations"]] == [SECOND.message_id]


async def test_the_same_answer_comes_as_plain_json(page: Serve) -> None:
    async with page() as client:
        streamed = await client.post("/api/ask", json=QUESTION)
        plain = await client.post("/api/ask", json=QUESTION, headers=JSON_ONLY)
    last = events_of(streamed.text)[-1][1]
    assert {**plain.json(), "timings_ms": {}} == {**last, "timings_ms": {}}


FORGED = {
    "workspace_id": "other",
    "workspace": "other",
    "channel_ids": ["leads"],
    "channels": ["leads"],
    "reader_channels": ["leads"],
    "no_channels": False,
    "reader": {"workspace_id": "other", "channel_ids": ["leads"]},
    "context": {"source": 1, "workspace_id": "other", "channel_ids": ["leads"]},
    "source": "slack",
    "pin": {"generation_id": "g9"},
    "generation": "g9",
    "generation_id": "g9",
    "explain": True,
    "limit": 500,
    "asker": "operator",
    "__proto__": {"channel_ids": ["leads"]},
}


async def test_nothing_that_a_client_sends_changes_what_may_be_read(
    page: Serve, script: Script
) -> None:
    script.ingest.workspaces["other"] = [channel("leads")]
    headers = {"authorization": "Bearer x", "x-workspace-id": "other", **JSON_ONLY}
    async with page() as client:
        honest = await client.post("/api/ask", json=QUESTION, headers=JSON_ONLY)
        forged = await client.post(
            "/api/ask",
            params={"workspace_id": "other", "channel_ids": "leads"},
            json={**FORGED, **QUESTION, "filter": FORGED},
            headers=headers,
        )
        searched = await client.get("/api/search", params={**_flat(FORGED), "q": "window"})
        thread = await client.get(
            "/api/thread", params={**_flat(FORGED), "message_id": SECRET.message_id}
        )
    assert {**forged.json(), "timings_ms": {}} == {**honest.json(), "timings_ms": {}}
    assert [m["message_id"] for m in searched.json()["messages"]] == [
        FIRST.message_id,
        SECOND.message_id,
    ]
    assert thread.status_code == 404
    assert {(c.workspace_id, tuple(c.channel_ids)) for c in script.retrieve.contexts} == {
        ("beacon", ("ops",))
    }
    assert {f.in_channel for f in script.retrieve.filters} == {""}


def _flat(fields: dict[str, object]) -> dict[str, str]:
    return {name: str(value) for name, value in fields.items() if name != "limit"}


async def test_a_private_message_is_answered_like_one_that_does_not_exist(page: Serve) -> None:
    async with page() as client:
        replies = [
            await client.get("/api/thread", params={"message_id": message_id})
            for message_id in (SECRET.message_id, "synthetic:ops:999")
        ]
    assert [reply.status_code for reply in replies] == [404, 404]
    assert replies[0].json() == replies[1].json()


async def test_a_chip_opens_its_message_inside_its_thread(page: Serve) -> None:
    async with page() as client:
        reply = await client.get("/api/thread", params={"message_id": SECOND.message_id})
    assert reply.json()["message_id"] == SECOND.message_id
    assert [m["text"] for m in reply.json()["messages"]] == [FIRST.text, SECOND.text]


async def test_without_retrieve_the_page_says_unavailable_and_never_finds_nothing(
    page: Serve,
) -> None:
    async with page(absent=("retrieve",)) as client:
        plain = await client.post("/api/ask", json=QUESTION, headers=JSON_ONLY)
        streamed = await client.post("/api/ask", json=QUESTION)
        search = await client.get("/api/search", params={"q": "window"})
        ready = await client.get("/readyz")
        alive = await client.get("/healthz")
    assert plain.status_code == search.status_code == ready.status_code == 503
    assert plain.json()["error"]["reason"] == "STAGE_UNAVAILABLE"
    assert plain.headers["retry-after"]
    name, data = events_of(streamed.text)[-1]
    assert (name, data["error"]["reason"]) == ("error", "STAGE_UNAVAILABLE")
    assert alive.status_code == 200


async def test_without_a_writer_the_sources_are_marked_unverified(page: Serve) -> None:
    async with page(absent=("answer",)) as client:
        answer = (await client.post("/api/ask", json=QUESTION, headers=JSON_ONLY)).json()
    assert answer["outcome"] == "sources_only"
    assert answer["citations"] == []
    assert {s["verdict"] for s in answer["unverified_sources"]} == {"unverified"}


async def test_before_the_workspace_is_loaded_everything_says_how_to_load_it(page: Serve) -> None:
    async with page(workspace_id="elsewhere") as client:
        replies = [
            await client.post("/api/ask", json=QUESTION),
            await client.get("/api/samples"),
            await client.get("/api/search", params={"q": "x"}),
        ]
        index = await client.get("/")
    assert {reply.status_code for reply in replies} == {503}
    assert {reply.json()["error"]["reason"] for reply in replies} == {"WORKSPACE_NOT_FOUND"}
    assert "recall import PATH --workspace elsewhere" in replies[0].json()["error"]["message"]
    assert index.status_code == 200


async def test_the_demo_s_workspace_is_loaded_by_make_demo_alone(
    page: Serve, script: Script
) -> None:
    script.ingest.workspaces.pop("beacon")
    async with page() as client:
        message = (await client.get("/api/samples")).json()["error"]["message"]
    assert "`make demo`" in message and "import" not in message


async def test_samples_are_beacon_s_and_name_public_channels_only(
    page: Serve, script: Script
) -> None:
    script.ingest.workspaces["export"] = [
        channel("C1", name="general"),
        channel("C2", ingest_pb2.CHANNEL_KIND_PRIVATE, name="board"),
    ]
    async with page() as client:
        beacon = (await client.get("/api/samples")).json()
    async with page(workspace_id="export") as client:
        export = (await client.get("/api/samples")).json()
    assert 6 <= len(beacon["samples"]) <= 8
    assert (export["workspace"], export["channels"], export["samples"]) == (
        "export",
        ["general"],
        [],
    )


async def test_the_example_of_a_date_is_two_weeks_before_the_newest_message(page: Serve) -> None:
    async with page() as client:
        view = (await client.get("/api/samples")).json()
    async with page(absent=("retrieve",)) as client:
        unknown = (await client.get("/api/samples")).json()
    newest = max(FIRST.posted_at.ToDatetime(), SECOND.posted_at.ToDatetime())
    assert view["example_day"] == (newest - timedelta(days=14)).date().isoformat()
    assert unknown["example_day"] == ""


@pytest.mark.parametrize(
    ("content", "content_type", "status", "reason"),
    [
        (b"{", "application/json", 400, "INVALID_REQUEST"),
        (b'{"question": "\\ud800"}', "application/json", 400, "INVALID_REQUEST"),
        (b'{"question": ""}', "application/json; charset=utf-8", 400, "INVALID_REQUEST"),
        (b'{"question": "q"}', "text/plain", 415, "NOT_JSON"),
        (b'{"question": "' + b"q" * 17_000 + b'"}', "application/json", 413, "BODY_TOO_LARGE"),
    ],
)
async def test_bad_input_is_named_as_json(
    page: Serve, content: bytes, content_type: str, status: int, reason: str
) -> None:
    async with page() as client:
        reply = await client.post(
            "/api/ask", content=content, headers={"content-type": content_type}
        )
    assert (reply.status_code, reply.json()["error"]["reason"]) == (status, reason)
    assert reply.json()["error"]["message"]


async def test_a_body_without_a_length_is_limited_too(page: Serve) -> None:
    async def endless() -> AsyncIterator[bytes]:
        for _ in range(64):
            yield b" " * 1024

    async with page() as client:
        reply = await client.post(
            "/api/ask", content=endless(), headers={"content-type": "application/json"}
        )
    assert reply.status_code == 413


async def test_a_body_that_does_not_arrive_is_given_up(page: Serve) -> None:
    async with page(limits=Limits(body_seconds=0.2)) as client:
        reader, writer = await asyncio.open_connection("127.0.0.1", client.base_url.port)
        writer.write(
            b"POST /api/ask HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
            b'content-length: 100\r\n\r\n{"question":'
        )
        status = await asyncio.wait_for(reader.readline(), 10)
        writer.close()
    assert status.split()[1] == b"408"


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/api/ask", 405),
        ("POST", "/", 405),
        ("GET", "/absent", 404),
        ("GET", "/static/absent.js", 404),
        ("GET", "/static/../config.py", 404),
        ("GET", "/static/%2e%2e/config.py", 404),
        ("GET", "/api/thread", 400),
        ("GET", "/api/search", 400),
        ("GET", "/api/search?q=x&limit=51", 400),
        ("GET", "/api/search?q=x&after=soon", 400),
        ("POST", "/recall.gateway.v1.RecallService/Ask", 404),
    ],
)
async def test_what_is_not_there_is_a_json_error(
    page: Serve, method: str, path: str, status: int
) -> None:
    async with page() as client:
        reply = await client.request(method, path)
    assert reply.status_code == status
    assert reply.json()["error"]["message"]


async def test_a_defect_shows_a_request_id_and_no_detail(page: Serve, script: Script) -> None:
    script.retrieve.search_reply = failing(ValueError("secret detail"))
    async with page() as client:
        reply = await client.post("/api/ask", json=QUESTION, headers=JSON_ONLY)
    assert reply.status_code == 500
    assert reply.headers["x-request-id"] in reply.json()["error"]["message"]
    assert "secret detail" not in reply.text


async def test_who_asks_too_often_is_told_when_to_come_back(page: Serve) -> None:
    limits = Limits(asks_per_minute=6, asks_burst=2)
    async with page(limits=limits) as client:
        replies = [await client.post("/api/ask", json=QUESTION) for _ in range(3)]
        read = await client.get("/api/samples")
    assert [reply.status_code for reply in replies] == [200, 200, 429]
    assert 1 <= int(replies[2].headers["retry-after"]) <= 10
    assert replies[2].json()["error"]["reason"] == "RATE_LIMITED"
    assert read.status_code == 200


async def test_a_client_can_not_pose_as_another_by_a_header(page: Serve) -> None:
    async with page(limits=Limits(asks_burst=1)) as client:
        replies = [
            await client.post(
                "/api/ask", json=QUESTION, headers={"x-forwarded-for": f"192.0.2.{number}"}
            )
            for number in range(2)
        ]
    assert [reply.status_code for reply in replies] == [200, 429]


async def test_while_all_places_are_taken_others_are_asked_to_wait(
    page: Serve, script: Script
) -> None:
    script.answer.reply = hang
    async with page(limits=Limits(asks_at_once=1, wait_seconds=0.1)) as client:
        first = asyncio.create_task(client.post("/api/ask", json=QUESTION))
        await asyncio.wait_for(script.answer.begun.wait(), 10)
        second = await client.post("/api/ask", json=QUESTION)
        first.cancel()
        await asyncio.wait_for(script.answer.cancelled.wait(), 10)
        script.answer.reply = None
        third = await client.post("/api/ask", json=QUESTION)
    assert second.status_code == 429
    assert second.headers["retry-after"]
    assert events_of(third.text)[-1][0] == "answer"


@pytest.mark.parametrize("accept", ["text/event-stream", "application/json"])
async def test_a_client_that_leaves_ends_the_stage_s_work(
    page: Serve, script: Script, accept: str
) -> None:
    script.answer.reply = hang
    async with page() as client:
        asking = asyncio.create_task(
            client.post("/api/ask", json=QUESTION, headers={"accept": accept})
        )
        await asyncio.wait_for(script.answer.begun.wait(), 10)
        asking.cancel()
        await asyncio.wait_for(script.answer.cancelled.wait(), 10)


async def test_a_request_that_takes_too_long_is_ended(page: Serve, script: Script) -> None:
    script.answer.reply = hang
    async with page(limits=Limits(request_seconds=0.5)) as client:
        reply = await client.post("/api/ask", json=QUESTION, headers=JSON_ONLY)
        await asyncio.wait_for(script.answer.cancelled.wait(), 10)
    assert reply.status_code in (200, 504)


async def test_headers_that_never_end_lose_their_connection(page: Serve) -> None:
    async with page(protocol=Hasty) as client:
        reader, writer = await asyncio.open_connection("127.0.0.1", client.base_url.port)
        writer.write(b"GET / HTTP/1.1\r\nhost: localhost\r\nx-slow: ")
        with pytest.raises(ConnectionResetError):
            while await asyncio.wait_for(reader.read(1), 10):
                pass
            raise ConnectionResetError
        writer.close()


async def test_a_reply_that_nobody_reads_is_dropped(page: Serve, script: Script) -> None:
    script.retrieve.messages = [message(n, "x" * 12_000, root=1) for n in range(1, 1000)]
    async with page(protocol=Hasty) as client:
        reader, writer = await asyncio.open_connection("127.0.0.1", client.base_url.port)
        path = "/api/thread?message_id=synthetic:ops:1"
        writer.write(f"GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n".encode())
        head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 20)
        await asyncio.sleep(1)
        length = int(re.findall(rb"content-length: (\d+)", head)[0])
        received = 0
        with pytest.raises((ConnectionResetError, asyncio.IncompleteReadError)):
            while received < length:
                received += len(await asyncio.wait_for(reader.readexactly(4096), 10))
        writer.close()


async def test_every_reply_carries_the_security_headers(page: Serve) -> None:
    async with page() as client:
        replies = [
            await client.get("/"),
            await client.get("/static/app.js"),
            await client.get("/api/samples"),
            await client.get("/absent"),
            await client.get("/api/samples", headers={"host": "evil.example"}),
            await client.post("/api/ask", content=b"{"),
        ]
    for reply in replies:
        policy = reply.headers["content-security-policy"]
        assert "default-src 'self'" in policy
        assert "unsafe" not in policy
        assert reply.headers["x-content-type-options"] == "nosniff"
        assert reply.headers["x-frame-options"] == "DENY"
        assert reply.headers["referrer-policy"] == "no-referrer"
        assert "server" not in reply.headers


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "evil.example"}, 421),
        ({"host": "localhost.evil.example:80"}, 421),
        ({"host": "LOCALHOST:7400"}, 200),
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"sec-fetch-site": "same-site"}, 403),
        ({"sec-fetch-site": "same-origin"}, 200),
    ],
)
async def test_other_sites_can_not_ask_through_a_visitor_s_browser(
    page: Serve, headers: dict[str, str], status: int
) -> None:
    async with page() as client:
        reply = await client.get("/api/samples", headers=headers)
    assert reply.status_code == status


async def test_one_context_gives_the_same_answer_through_the_page_and_through_grpc(
    script: Script, callers: Callers
) -> None:
    async with served(script, callers) as stages:
        directory = Directory(stages, time.monotonic)
        demo = Demo(stages, directory, "beacon", time.monotonic)
        service = RecallService(stages, directory)
        servicers = Servicers(
            lambda s: gateway_pb2_grpc.add_RecallServiceServicer_to_server(service, s),
            (SERVICE_NAME,),
        )
        async with (
            serving_http(create_app(demo), LOOPBACK) as port,
            httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as client,
            serving(LOOPBACK, callers, servicers) as running,
        ):
            shown = (await client.post("/api/ask", json=QUESTION, headers=JSON_ONLY)).json()
            found = (await client.get("/api/search", params={"q": WORDS})).json()
            peer = Peer(f"127.0.0.1:{running.port}", lambda: callers.token_of("operator"))
            stub = gateway_pb2_grpc.RecallServiceStub(peer.channel())
            request = gateway_pb2.AskRequest(question=WORDS)
            answer = [event async for event in stub.Ask(request, timeout=10)][-1].answer
            result = (
                await stub.Search(gateway_pb2.SearchRequest(question=WORDS), timeout=10)
            ).result
            await peer.close()
    assert shown["text"] == answer.text
    assert [c["message_id"] for c in shown["citations"]] == [c.message_id for c in answer.citations]
    assert [m["message_id"] for m in found["messages"]] == [
        hit.message.message_id for hit in result.hits
    ]
    assert script.retrieve.contexts[0] == script.retrieve.contexts[2]
    assert script.answer.requests[0].evidence == script.answer.requests[1].evidence


async def test_a_taken_port_is_one_clear_sentence() -> None:
    taken = bind(LOOPBACK)
    taken.listen()
    port = taken.getsockname()[1]
    with pytest.raises(PortTakenError, match=f"Port {port} is taken"):
        bind(Listener("127.0.0.1", port))
    taken.close()


def test_the_page_is_small_and_asks_no_other_host() -> None:
    texts = {path.name: path.read_text("utf-8") for path in Path(WEB).iterdir()}
    assert sum(len(text.encode()) for text in texts.values()) < 60_000
    page_text = texts["index.html"] + texts["style.css"] + texts["app.js"]
    assert re.findall(r"(?:src|href)=[\"'](?!/|#)[^\"']*", page_text) == []
    assert "url(" not in texts["style.css"]
    assert (
        re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(", page_text)
        is None
    )
    assert re.search(r"<style|style=|\son\w+=", texts["index.html"]) is None
