"""One export full of shapes that broke other importers, through every process of the product."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import psycopg
import pytest

from recall.corpus.v1 import corpus_pb2
from recall.gateway.v1 import gateway_pb2, gateway_pb2_grpc
from recall.retrieve.v1 import retrieve_pb2, retrieve_pb2_grpc
from services.cli.connection import operator_token
from services.stack.postgres import EmbeddedPostgres
from tests import builders as b
from tests.e2e.conftest import REPOSITORY, Result, Running
from tests.waiting import until

WORKSPACE = "odd"
OPS, BUGS, SHARED = "C0OPS", "C0BUGS", "C0SHARED"
# Assembled here, so that no scanner takes the test's own text for a leaked credential.
TOKEN = "-".join(("xoxe", "1234567890", "1234567890123", "abcdef0123456789"))
MARCH, JUNE = 1_772_442_000, 1_780_390_800


def post(text: str, second: int, author: str = "U1", **fields: object) -> b.Record:
    return {
        "type": "message", "user": author, "text": text, "ts": f"{second}.000100",
        "team": b.TEAM, **fields,
    }  # fmt: skip


def bot(text: str, second: int, **fields: object) -> b.Record:
    by_a_bot = {"subtype": "bot_message", "user": None, "bot_id": "B1", "username": "bugs"}
    return {**post(text, second), **by_a_bot, **fields}


def exported() -> dict[str, object]:
    """The files of the export."""
    root = f"{MARCH + 500}.000100"
    ops = [
        post("the deploy window is Tuesday", MARCH),
        post("payments worker OOM-restarts nightly", MARCH + 100, "U2"),
        post("I can not reproduce the export crash", MARCH + 500, thread_ts=root),
        post("I reproduced the export crash on 3.2", MARCH + 560, "U2", thread_ts=root),
        post("the tokenizer prints <|endoftext|> and <|im_start|>", MARCH + 600),
        bot("", MARCH + 700, attachments=[
            {"fallback": "Disk 91% on db-2", "fields": [{"title": "host", "value": "db-2"}]}]),
        post("see here", MARCH + 800, blocks=[{"type": "rich_text", "elements": [
            {"type": "rich_text_section", "elements": [
                {"type": "text", "text": "see "},
                {"type": "link", "url": "https://ex.test/failover-runbook", "text": "here"}]}]}]),
        post(f"the seating plan is up, plan@ex.test has it, <https://files.slack.com/files-pri/T1-F1/seating.png?t={TOKEN}|seating>",
             MARCH + 900, files=[{"id": "F1", "name": "seating.png",
                                  "url_private": f"https://files.slack.com/seating.png?t={TOKEN}"},
                                 {"id": "F2", "mode": "tombstone"}]),
        post("the deploy window moved to Thursday", JUNE),
        post("a reminder", JUNE + 10, "USLACKBOT"),
    ]  # fmt: skip
    shared = [
        post("the shipment leaves Rotterdam on Friday", MARCH, "U0EXT", user_team="T0OTHER",
             user_profile={"display_name": "Edna", "real_name": "Edna Krall"}),
    ]  # fmt: skip
    bugs = [
        bot(f"BUG-{number} opened: export crash in the deploy window of module {number}",
            MARCH + 2_000 + number)
        for number in range(40)
    ]  # fmt: skip
    broken = f'[{{"type": "message", "text": "https://x.test/?t={TOKEN}" "ts": 1}}, {{"a'
    return {
        "users.json": [b.slack_user("U1", "Ada"), b.slack_user("U2", "Grace")],
        "channels.json": [
            b.slack_channel(OPS, "ops"), b.slack_channel(BUGS, "bugs"),
            b.slack_channel(SHARED, "shared"),
        ],
        "mpims.json": [{"id": "G1", "name": "mpdm-ada--gone-1", "members": ["U1", "U0GONE"]}],
        "ops/2026-03-02.json": ops,
        "shared/2026-03-02.json": shared,
        "bugs/2026-03-02.json": bugs,
        "mpdm-ada--gone-1/2026-03-02.json": [post("bye from me", MARCH, "U0GONE")],
        "ops/2026-06-03.json": broken.encode(),
    }  # fmt: skip


@pytest.fixture(scope="module")
def odd(beacon: Running, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """The stack, with the odd export imported and embedded."""
    path = b.write_zip(tmp_path_factory.mktemp("odd") / "odd.zip", exported())
    imported = beacon.recall("import", str(path), "--workspace", WORKSPACE, "--json")
    assert imported.status == 0, imported.errors
    (beacon.stack.home / "odd-report.json").write_text(imported.output, "utf-8")
    yield beacon


@pytest.fixture
def owner(beacon: Running) -> Iterator[psycopg.Connection[Any]]:
    """The database past every wall."""
    postgres = EmbeddedPostgres(beacon.stack.home / "postgres", beacon.stack.port("postgres"))
    with psycopg.connect(postgres.url(), autocommit=True) as connection:
        yield connection


def search(running: Running, *arguments: str) -> list[dict[str, Any]]:
    result = running.recall("search", *arguments, "--workspace", WORKSPACE, "--json")
    assert result.status in (0, 3), result.errors
    messages: list[dict[str, Any]] = result.json["messages"]
    return messages


def until_status(running: Running, status: int) -> Result:
    """The first search on Beacon that ends so, or the last one within a minute."""
    deadline = time.monotonic() + 60
    while True:
        result = running.recall("search", "28P01", "--workspace", "beacon", "--json")
        if result.status == status or time.monotonic() > deadline:
            return result


def ask(running: Running, question: str) -> dict[str, Any]:
    return running.recall("ask", question, "--workspace", WORKSPACE, "--json").json


def test_the_report_names_what_is_odd_and_nothing_stops(odd: Running) -> None:
    report = json.loads((odd.stack.home / "odd-report.json").read_text("utf-8"))
    assert report["imported"] == 52
    assert report["unknown_authors"] == ["U0GONE"]
    notes = " ".join(report["notes"])
    assert "ops/2026-06-03.json" in notes
    assert "1 files are gone" in notes


def test_a_guest_of_another_team_is_searchable_by_name(odd: Running) -> None:
    for name in ("Edna", "U0EXT"):
        found = search(odd, f"from:{name} when does the shipment leave")
        assert [(hit["author"], hit["channel"]) for hit in found] == [("Edna", "shared")]


def test_an_author_whom_nobody_names_shows_by_id(odd: Running) -> None:
    found = search(odd, "bye from me", "--reader-channels", "G1")
    assert [hit["author"] for hit in found] == ["U0GONE"]


def test_words_that_stand_only_in_attachments_are_found(odd: Running) -> None:
    best = search(odd, "disk host db-2", "--channel", "ops")[0]
    assert "db-2" in best["text"] and best["author"] == "bugs"


def test_the_target_of_a_linked_word_is_found_and_citable(odd: Running) -> None:
    for question in ("failover runbook", "who uses https://ex.test/failover-runbook"):
        best = search(odd, question)[0]
        assert best["text"] == "see here (https://ex.test/failover-runbook)"


def test_one_absent_word_of_a_question_hides_nothing(odd: Running) -> None:
    found = search(odd, "why does the payments worker restart at night")
    assert found[0]["text"] == "payments worker OOM-restarts nightly"


def test_the_latest_statement_answers_a_question_about_now(odd: Running) -> None:
    answer = ask(odd, "When is the deploy window now?")
    assert answer["outcome"] == "answered"
    assert "Thursday" in answer["text"]
    assert [c["message_id"] for c in answer["citations"]] == [f"slack:{b.TEAM}:{OPS}:{JUNE}.000100"]


def test_a_claim_stays_with_the_thread_member_who_made_it(odd: Running) -> None:
    answer = ask(odd, "Who reproduced the export crash on 3.2? in:#ops")
    cited = [c for c in answer["citations"] if "3.2" in c["text"]]
    assert [c["author"] for c in cited] == ["Grace"]
    assert "Grace" in answer["text"]
    reply, root = f"{MARCH + 560}.000100", f"{MARCH + 500}.000100"
    assert cited[0]["permalink"].endswith(
        f"/archives/{OPS}/p{reply.replace('.', '')}?thread_ts={root}&cid={OPS}"
    )


def test_a_control_token_is_an_ordinary_word_of_a_message_and_of_a_question(odd: Running) -> None:
    text = "the tokenizer prints <|endoftext|> and <|im_start|>"
    assert search(odd, "what prints <|endoftext|>")[0]["text"] == text
    assert ask(odd, "what prints <|endoftext|> and <|im_start|>?")["outcome"] == "answered"


def test_the_most_recent_message_of_a_person_in_a_channel_is_exact(odd: Running) -> None:
    async def newest() -> list[str]:
        metadata = (("authorization", f"Bearer {operator_token(odd.environ)}"),)
        async with grpc.aio.insecure_channel(f"127.0.0.1:{odd.stack.port('retrieve')}") as channel:
            page = await retrieve_pb2_grpc.RetrieveServiceStub(channel).ReadTimeline(
                retrieve_pb2.ReadTimelineRequest(
                    context=corpus_pb2.QueryContext(
                        source=corpus_pb2.SOURCE_SLACK,
                        workspace_id=WORKSPACE,
                        channel_ids=[OPS, BUGS, SHARED],
                    ),
                    filter=corpus_pb2.Filter(in_channel="#ops", author="Ada"),
                    newest_first=True,
                    page_size=1,
                ),
                metadata=metadata,
            )
        return [message.text for message in page.messages]

    assert asyncio.run(newest()) == ["the deploy window moved to Thursday"]


def test_no_question_of_odd_characters_fails(odd: Running, tmp_path: Path) -> None:
    questions = [
        "team:web", "'\":*", "O'Dea", "a & | ! <-> (", "trailing \\", "it’s ＇quoted＇",
        "the of and", "deploy " * 1_400,
    ]  # fmt: skip
    lines = tmp_path / "questions.jsonl"
    lines.write_text(
        "\n".join(json.dumps({"id": str(n), "question": q}) for n, q in enumerate(questions))
    )
    result = odd.recall("search", "--questions", str(lines), "--workspace", WORKSPACE, "--json")
    assert [line["id"] for line in result.lines] == [str(n) for n in range(len(questions))]
    assert not [line for line in result.lines if "error" in line]
    assert odd.recall("search", "", "--workspace", WORKSPACE).status == 2


def test_a_bot_that_wrote_most_messages_does_not_own_every_result(odd: Running) -> None:
    for question in ("export crash", "deploy window"):
        people = [hit["author"] for hit in search(odd, question) if hit["author"] != "bugs"]
        assert people, question


def test_with_bots_switched_off_only_people_are_found(odd: Running, tmp_path: Path) -> None:
    path = b.write_zip(tmp_path / "odd.zip", exported())
    quiet = ("--workspace", "quiet", "--json")
    report = odd.recall("import", str(path), "--skip-bots", "--no-wait", *quiet).json
    assert report["skipped"]["bot_switched_off"] == 42
    found = odd.recall("search", "export crash deploy window bug", *quiet).json["messages"]
    authors = {hit["author"] for hit in found}
    assert authors >= {"Ada", "Grace"} and not authors & {"bugs", "Slackbot"}


def test_no_token_of_a_file_link_is_stored_shown_or_logged(
    odd: Running, owner: psycopg.Connection[Any]
) -> None:
    best = search(odd, "the seating plan")[0]
    assert "seating.png" in best["text"]
    tables = owner.execute(
        "SELECT quote_ident(table_name) FROM information_schema.tables "
        "WHERE table_schema = 'public' AND table_type = 'BASE TABLE'"
    ).fetchall()
    assert len(tables) > 10
    for (table,) in tables:
        held = owner.execute(
            f"SELECT count(*) FROM {table} AS held WHERE held::text ILIKE '%xoxe%'"
        )
        assert held.fetchone() == (0,), table
    shown = odd.recall("search", "seating plan", "--workspace", WORKSPACE, "--explain").output
    logs = [path for path in odd.stack.home.rglob("*.log") if path.is_file()]
    assert {path.stem for path in logs} > {"ingest", "ingest-worker", "retrieve", "gateway"}
    written = "".join(path.read_text("utf-8", "replace") for path in logs)
    report = (odd.stack.home / "odd-report.json").read_text("utf-8")
    for text in (shown, written, report):
        assert "xoxe" not in text
    assert "plan@ex.test" not in written


def test_a_killed_import_is_completed_and_a_newer_export_changes_only_what_changed(
    beacon: Running, owner: psycopg.Connection[Any], tmp_path: Path
) -> None:
    texts = [post(f"killed import message {number}", MARCH + number) for number in range(6_000)]
    files = {**exported(), "ops/2026-03-02.json": texts}
    path = b.write_zip(tmp_path / "killed.zip", files)
    arguments = ("import", str(path), "--workspace", "killed", "--no-wait", "--json")
    command = subprocess.Popen(
        (sys.executable, "-m", "services.cli", *arguments),
        env=beacon.environ, cwd=REPOSITORY, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
    )  # fmt: skip

    def stored() -> int:
        found = owner.execute("SELECT count(*) FROM messages WHERE workspace_id = 'killed'")
        return int((found.fetchone() or (0,))[0])

    asyncio.run(until(lambda: stored() > 0))
    beacon.kill("ingest")
    errors = command.communicate()[1]
    assert command.returncode == 1 and errors.strip()
    assert 0 < stored() < 6_000
    beacon.up()
    completed = beacon.recall(*arguments).json
    assert completed["imported"] + completed["unchanged"] == 6_042
    assert stored() == 6_042
    assert completed["generation_created"] is True
    newer = {**files, "ops/2026-03-02.json": [*texts[5_000:], post("brand new", JUNE)]}
    edited = {"user": "U1", "ts": f"{JUNE}.000200"}
    newer["shared/2026-03-02.json"] = [
        {**record, "text": "the shipment leaves on Monday", "edited": edited}
        for record in newer["shared/2026-03-02.json"]  # type: ignore[attr-defined]
    ]
    b.write_zip(path, newer)
    report = beacon.recall(*arguments).json
    assert (report["imported"], report["updated"]) == (1, 1)
    assert (stored(), report["chunks_written"]) == (6_043, 2)


def test_twenty_requests_at_once_are_answered_once_the_database_is_back(beacon: Running) -> None:
    postgres = EmbeddedPostgres(beacon.stack.home / "postgres", beacon.stack.port("postgres"))

    async def twenty() -> list[str]:
        metadata = (("authorization", f"Bearer {operator_token(beacon.environ)}"),)
        request = gateway_pb2.SearchRequest(
            reader=gateway_pb2.Reader(workspace_id="beacon"), question="28P01"
        )
        async with grpc.aio.insecure_channel(
            f"127.0.0.1:{beacon.stack.port('gateway')}"
        ) as channel:
            stub = gateway_pb2_grpc.RecallServiceStub(channel)

            async def one() -> str:
                try:
                    found = await stub.Search(request, metadata=metadata, timeout=30)
                except grpc.aio.AioRpcError as error:
                    return error.code().name
                return "answered" if found.result.hits else "empty"

            return await asyncio.gather(*(one() for _ in range(20)))

    assert set(asyncio.run(twenty())) == {"answered"}
    postgres.stop()
    assert set(asyncio.run(twenty())) == {"UNAVAILABLE"}
    postgres.start()
    status = until_status(beacon, 0)
    assert status.status == 0, status.errors
    assert set(asyncio.run(twenty())) == {"answered"}
