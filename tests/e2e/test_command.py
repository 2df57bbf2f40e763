"""The command on a running stack: formats, exit statuses, files of questions."""

from __future__ import annotations

import json
from pathlib import Path

from tests.e2e.conftest import Running

QUESTION = "Which command fixed the local 28P01 Postgres failure?"
EVIDENCE = "synthetic:engineering:e0076"


def test_the_28p01_question_is_answered_with_the_right_command_and_citation(
    beacon: Running,
) -> None:
    result = beacon.recall("ask", QUESTION, "--workspace", "beacon", "--json")
    answer = result.json
    assert result.status == 0, result.errors
    assert "ALTER ROLE beacon PASSWORD" in answer["text"]
    assert EVIDENCE in [citation["message_id"] for citation in answer["citations"]]
    assert set(answer) >= {
        *("outcome", "text", "reason", "citations", "rerank_tier"),
        *("generation_id", "degraded", "timings_ms"),
    }
    assert set(answer["citations"][0]) >= {
        *("message_id", "channel", "author", "posted_at", "permalink", "text"),
    }


def test_search_prints_messages_in_rank_order_with_both_ranks(beacon: Running) -> None:
    result = beacon.recall("search", QUESTION, "--workspace", "beacon", "--json")
    messages = result.json["messages"]
    scores = [message["fused_score"] for message in messages]
    assert result.status == 0
    assert len(messages) == 12
    assert scores == sorted(scores, reverse=True)
    assert EVIDENCE in [message["message_id"] for message in messages]
    assert all(message["verdict"] == "unverified" for message in messages)
    assert all(message["confidence"] is None for message in messages)


def test_a_reader_without_channels_reads_nothing(beacon: Running) -> None:
    result = beacon.recall(
        "search", QUESTION, "--workspace", "beacon", "--reader-channels", "", "--json"
    )
    assert result.status == 3
    assert result.json["abstained"] is True
    assert result.json["messages"] == []


def test_a_private_channel_is_answered_like_one_that_does_not_exist(beacon: Running) -> None:
    answers = [
        beacon.recall("search", f"in:#{channel} salary", "--workspace", "beacon", "--json")
        for channel in ("hiring", "nowhere")
    ]
    first, second = (
        {
            key: value
            for key, value in json.loads(result.output.replace("hiring", "nowhere")).items()
            if key != "timings_ms"
        }
        for result in answers
    )
    assert first == second
    assert [result.status for result in answers] == [3, 3]


def test_a_file_of_questions_is_answered_line_by_line(beacon: Running, tmp_path: Path) -> None:
    questions = tmp_path / "questions.jsonl"
    lines = [
        {"id": "a", "question": QUESTION},
        {"id": "b", "question": QUESTION, "reader_channels": []},
        {"id": "c", "question": QUESTION, "channel": "engineering", "after": "2026-08-01"},
        {"id": "d", "question": ""},
    ]
    questions.write_text("\n".join(map(json.dumps, lines)))
    searched = beacon.recall("search", "--workspace", "beacon", "--questions", str(questions))
    found = {line["id"]: line for line in searched.lines}
    assert list(found) == ["a", "b", "c", "d"]
    assert found["b"]["messages"] == []
    assert {message["channel"] for message in found["c"]["messages"]} == {"engineering"}
    assert found["d"]["error"]["reason"] == "INVALID_REQUEST"
    asked = beacon.recall("ask", "--workspace", "beacon", "--questions", str(questions))
    outcomes = [line.get("outcome") for line in asked.lines]
    assert outcomes == ["answered", "abstained", "answered", None]
    for result in (searched, asked):
        assert result.status == 1
        assert "1 of 4 questions failed" in result.errors


def test_bad_usage_names_the_argument_and_ends_with_two(beacon: Running) -> None:
    for arguments, named in (
        (("ask", "q", "--after", "yesterday-ish"), "--after"),
        (("ask",), "QUESTION"),
        (("ask", "q", "--workspace", "nowhere"), "nowhere"),
        (("import", "no/such/file.zip"), "no/such/file.zip"),
        (("search", "--questions", "missing.jsonl"), "missing.jsonl"),
    ):
        result = beacon.recall(*arguments)
        assert result.status == 2, (arguments, result)
        assert named in result.errors


def test_windows_are_read_in_time_order_and_cited(beacon: Running) -> None:
    for command in ("catch-up", "summary", "decisions"):
        result = beacon.recall(
            command, "--workspace", "beacon", "--channel", "engineering", "--json"
        )
        assert result.status in (0, 3), result.errors
        if result.status == 0:
            assert result.json["citations"]
            cited = [each["message_id"] for each in result.json["citations"]]
            assert all(f"[{message_id}]" in result.json["text"] for message_id in cited)


def test_a_workspace_that_is_set_strict_refuses_what_nothing_certifies(beacon: Running) -> None:
    strict = beacon.recall("settings", "--workspace", "beacon", "--trust", "strict", "--json")
    assert strict.json["trust"] == "strict"
    try:
        refused = beacon.recall("ask", QUESTION, "--workspace", "beacon", "--json")
        relaxed = beacon.recall(
            "ask", QUESTION, "--workspace", "beacon", "--trust", "relaxed", "--json"
        )
    finally:
        beacon.recall("settings", "--workspace", "beacon", "--trust", "default")
    assert (refused.status, refused.json["outcome"]) == (3, "refused")
    assert (relaxed.status, relaxed.json["outcome"]) == (0, "answered")
    asked = beacon.recall("ask", QUESTION, "--workspace", "beacon", "--json")
    assert asked.json["outcome"] == "answered"


def test_status_shows_every_stage_and_the_workspace(beacon: Running) -> None:
    result = beacon.recall("status", "--json")
    assert result.status == 0, result.errors
    assert [stage["stage"] for stage in result.json["stages"] if stage["serving"]] == [
        *("ingest", "retrieve", "rerank", "answer"),
    ]
    beacon_row = next(w for w in result.json["workspaces"] if w["workspace_id"] == "beacon")
    assert beacon_row["chunks_without_vector"] == 0
    assert beacon_row["messages"] == 811


def test_status_of_a_workspace_shows_its_channels(beacon: Running) -> None:
    result = beacon.recall("status", "--workspace", "beacon", "--json")
    found = result.json
    assert found["seconds_left"] is None
    assert sum(channel["messages"] for channel in found["channels"]) > 0
    assert {channel["history"] for channel in found["channels"]} == {""}
    shown = beacon.recall("status", "--workspace", "beacon")
    assert shown.status == 0
    assert "imported" in shown.output


def test_generations_are_listed_checked_and_kept(beacon: Running) -> None:
    listed = beacon.recall("generations", "list", "--workspace", "beacon", "--json")
    (serving,) = json.loads(listed.output)
    assert (serving["state"], serving["calibration_status"]) == ("active", "")
    assert (serving["is_sealed"], serving["collection"]) == (False, "")
    generation_id = serving["generation_id"]
    shown = beacon.recall("generations", "list", "--workspace", "beacon")
    assert generation_id in shown.output and "none" in shown.output
    checked = beacon.recall("generations", "validate", generation_id, "--workspace", "beacon")
    assert checked.status == 0, checked.errors
    assert f"{generation_id} is active: 811 sources" in checked.output
    for arguments, named in (
        (("rollback",), "nothing to go back to"),
        (("promote",), "GENERATION is missing"),
        (("validate", "g-unknown"), "g-unknown"),
    ):
        refused = beacon.recall("generations", *arguments, "--workspace", "beacon")
        assert refused.status == 2, refused
        assert named in refused.errors
    collected = beacon.recall("generations", "gc", "--workspace", "beacon")
    assert (collected.status, collected.output.strip()) == (0, "Nothing to collect.")
