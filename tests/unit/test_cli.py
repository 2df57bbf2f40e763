"""The command's pure parts: options, JSON objects, text for people."""

from __future__ import annotations

import argparse
import json
from datetime import UTC, datetime
from pathlib import Path

import grpc
import pytest

from recall.corpus.v1 import corpus_pb2
from recall.error.v1 import error_pb2
from recall.gateway.v1 import gateway_pb2
from recall.ingest.v1 import ingest_pb2
from recall.rerank.v1 import rerank_pb2
from recall.retrieve.v1 import retrieve_pb2
from services.cli import as_json, render
from services.cli.__main__ import main, parser
from services.cli.connection import BAD_USAGE, UNAVAILABLE, UsageError, explain_failure
from services.cli.options import filter_of, parse_instant, read_questions, reader_of
from services.cli.terminal import printable
from services.corpus import timestamp
from services.runtime.errors import CallError, invalid

POSTED = datetime(2026, 8, 3, 9, 14, tzinfo=UTC)


def message(text: str = "psql -U postgres", local_id: str = "p1") -> corpus_pb2.Message:
    return corpus_pb2.Message(
        message_id=f"synthetic:ops:{local_id}",
        channel_name="ops",
        author_name="Ines",
        posted_at=timestamp(POSTED),
        text=text,
    )


def options(*arguments: str) -> argparse.Namespace:
    return parser().parse_args(arguments)


def test_without_reader_channels_the_gateway_chooses_the_public_ones() -> None:
    assert reader_of(options("ask", "q")) == gateway_pb2.Reader()


@pytest.mark.parametrize("given", ["", ",", " , "])
def test_an_empty_list_of_reader_channels_reads_nothing(given: str) -> None:
    assert reader_of(options("ask", "q", "--reader-channels", given)).no_channels


def test_reader_channels_are_split_at_commas() -> None:
    reader = reader_of(options("ask", "q", "--reader-channels", "C1, C2", "--workspace", "w"))
    assert (list(reader.channel_ids), reader.workspace_id) == (["C1", "C2"], "w")


@pytest.mark.parametrize(("more", "workspace"), [((), "documents"), (("--workspace", "w"), "w")])
def test_a_collection_is_all_that_is_read_in_the_documents_workspace_unless_another_is_named(
    more: tuple[str, ...], workspace: str
) -> None:
    reader = reader_of(options("search", "q", "--collection", "notes", *more))
    assert (list(reader.channel_ids), reader.workspace_id) == (["notes"], workspace)


@pytest.mark.parametrize(
    ("value", "instant"),
    [
        ("2026-08-03", datetime(2026, 8, 3, tzinfo=UTC)),
        ("2026-08-03T10:00:00Z", datetime(2026, 8, 3, 10, tzinfo=UTC)),
        ("2026-08-03T10:00:00+02:00", datetime(2026, 8, 3, 8, tzinfo=UTC)),
        ("", None),
        (None, None),
    ],
)
def test_dates_are_midnight_in_utc_unless_they_say_more(
    value: str | None, instant: datetime | None
) -> None:
    assert parse_instant("--after", value) == instant


@pytest.mark.parametrize("value", ["soon", "2026-13-01", "03.08.2026"])
def test_a_date_that_is_none_is_bad_usage_that_names_it(value: str) -> None:
    with pytest.raises(UsageError, match=f"--before '{value}'"):
        filter_of(options("search", "q", "--before", value))


def test_a_line_of_a_questions_file_wins_over_the_command_line(tmp_path: Path) -> None:
    path = tmp_path / "q.jsonl"
    lines = [
        {"id": 7, "question": "a", "channel": "ops", "reader_channels": ["C1"]},
        {"id": "x", "question": "b"},
    ]
    path.write_text("\n\n".join(map(json.dumps, lines)))
    given = options("ask", "--channel", "general", "--reader-channels", "C9")
    first, second = read_questions(path, given)
    assert (first.question_id, first.narrowing.in_channel) == ("7", "ops")
    assert list(first.reader.channel_ids) == ["C1"]
    assert (second.narrowing.in_channel, list(second.reader.channel_ids)) == ("general", ["C9"])


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("{", "q.jsonl:1"),
        ('{"id": 1}', "'question'"),
        ("[]", "'question'"),
        ('{"question": "a", "reader_channels": "C1"}', "'reader_channels'"),
        ('{"question": "a", "after": 5}', "'after'"),
        ('{"question": "a", "after": "soon"}', "--after"),
    ],
)
def test_a_bad_line_is_named_with_its_number_or_field(
    tmp_path: Path, line: str, named: str
) -> None:
    path = tmp_path / "q.jsonl"
    path.write_text(line)
    with pytest.raises(UsageError, match=named):
        list(read_questions(path, options("ask")))


def test_an_answer_as_json_has_every_promised_field() -> None:
    final = gateway_pb2.Answer(
        outcome=corpus_pb2.OUTCOME_ANSWERED,
        text="It was psql [synthetic:ops:p1].",
        citations=[message()],
        rerank_tier=rerank_pb2.TIER_LUNA,
        generation_id="g1",
        degraded=["rerank:jev:timeout"],
        timings_ms={"total": 12.34},
    )
    assert as_json.answer(final) == {
        "outcome": "answered",
        "text": "It was psql [synthetic:ops:p1].",
        "abstained": False,
        "reason": "",
        "refusal": "",
        "confidence": None,
        "calibration_id": "",
        "hits": [],
        "citations": [as_json.message(message())],
        "rerank_tier": "luna",
        "generation_id": "g1",
        "degraded": ["rerank:jev:timeout"],
        "timings_ms": {"total": 12.3},
        "unverified_sources": [],
        "writer": "",
    }


def test_ranks_of_an_arm_that_missed_the_message_are_null_not_zero() -> None:
    found = corpus_pb2.Hit(
        message=message(),
        lexical_rank=0,
        fused_score=0.1,
        verdict=corpus_pb2.VERDICT_UNVERIFIED,
    )
    printed = as_json.hit(found)
    assert (printed["dense_rank"], printed["lexical_rank"]) == (None, 0)
    assert (printed["verdict"], printed["confidence"]) == ("unverified", None)


def test_an_abstained_search_says_why_and_lists_nothing() -> None:
    reply = retrieve_pb2.SearchResponse(abstained=True, reason="No channel may be read.")
    assert as_json.search_result(reply)["messages"] == []
    assert "No channel may be read." in render.search_result(reply)


def test_text_for_people_fits_eighty_columns() -> None:
    final = gateway_pb2.Answer(
        outcome=corpus_pb2.OUTCOME_ANSWERED, text="word " * 60, citations=[message("so " * 90)]
    )
    assert max(map(len, render.answer(final).splitlines())) <= 80


def test_sources_without_an_answer_are_called_unverified() -> None:
    final = gateway_pb2.Answer(
        outcome=corpus_pb2.OUTCOME_SOURCES_ONLY,
        unverified_sources=[corpus_pb2.Hit(message=message())],
        degraded=["answer_unavailable"],
    )
    shown = render.answer(final)
    assert "unverified" in shown
    assert "[synthetic:ops:p1]" in shown
    assert "answer_unavailable" in shown


def test_an_import_report_counts_what_was_left_out_and_why() -> None:
    report = ingest_pb2.ImportReport(
        workspace_id="w",
        counts=ingest_pb2.ImportCounts(received=3, imported=2, skipped={"no_text": 1}),
        empty_channels=["quiet"],
    )
    shown = render.import_report(as_json.import_report(report))
    assert "2 imported" in shown
    assert "skipped 1: messages without text" in shown
    assert "quiet" in shown


@pytest.mark.parametrize(
    ("error", "line", "status"),
    [
        (invalid("question", "must not be empty."), "question: must not be empty.", BAD_USAGE),
        (
            CallError(
                grpc.StatusCode.UNAVAILABLE,
                error_pb2.ERROR_REASON_STAGE_UNAVAILABLE,
                "failed to connect to all addresses; last error: refused",
            ),
            "make up",
            UNAVAILABLE,
        ),
        (
            CallError(
                grpc.StatusCode.UNAVAILABLE,
                error_pb2.ERROR_REASON_DATABASE_UNAVAILABLE,
                "The database can not be reached.",
            ),
            "The database can not be reached.",
            UNAVAILABLE,
        ),
    ],
)
def test_failures_become_one_line_and_the_right_exit_status(
    error: CallError, line: str, status: int
) -> None:
    shown, given = explain_failure(error)
    assert line in shown
    assert given == status


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("two\nlines\tand a tab, é 東 🎉", "two\nlines\tand a tab, é 東 🎉"),
        ("\x1b]0;title\x07\x1b[31mred", "\ufffd]0;title\ufffd\ufffd[31mred"),
        ("\x9b31m \r\x7f \u202eevil", "\ufffd31m \ufffd\ufffd \ufffdevil"),
    ],
)
def test_a_terminal_shows_what_others_wrote_and_never_obeys_it(text: str, shown: str) -> None:
    assert printable(text) == shown


@pytest.mark.parametrize(
    "arguments",
    [
        ("ask", "caf\udce9"),
        ("search", "x", "--workspace", "\udcff"),
        ("catch-up", "--channel", "\udcff"),
        ("ask", "x", "--after", "0001-01-01T00:00:00+14:00"),
    ],
)
def test_an_argument_that_can_not_be_sent_is_bad_usage(
    arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == BAD_USAGE
    assert capsys.readouterr().err.count("\n") == 1


def test_a_number_too_large_for_a_request_is_bad_usage(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit) as raised:
        main(["search", "x", "--limit", "99999999999"])
    assert raised.value.code == BAD_USAGE
    assert "--limit" in capsys.readouterr().err


@pytest.mark.parametrize(
    "line",
    [
        '{"question": "\\ud800"}',
        '{"id": "\\ud800", "question": "x"}',
        '{"question": "x", "reader_channels": ["\\ud800"]}',
        '{"question": "x", "workspace": 5}',
        "[" * 100_000,
    ],
)
def test_a_line_of_questions_that_can_not_be_sent_is_named(tmp_path: Path, line: str) -> None:
    path = tmp_path / "questions.jsonl"
    path.write_text(line)
    with pytest.raises(UsageError, match=r"questions.jsonl:1"):
        list(read_questions(path, options("ask", "--questions", str(path))))
