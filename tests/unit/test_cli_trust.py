"""``recall calibrate`` and ``recall settings``: what is read, what is sent, what is shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from recall.corpus.v1 import corpus_pb2
from recall.ingest.v1 import generations_pb2, slack_pb2
from services.cli.__main__ import parser
from services.cli.calibrate import calibration_lines, read_labels
from services.cli.connection import UsageError
from services.cli.settings import as_json, wanted_settings


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((), slack_pb2.Settings()),
        (("--trust", "strict"), slack_pb2.Settings(trust_mode=corpus_pb2.TRUST_MODE_STRICT)),
        (("--trust", "default"), slack_pb2.Settings(trust_mode=corpus_pb2.TRUST_MODE_UNSPECIFIED)),
        (
            ("--false-confirm-target", "0.05", "--false-abstain-target", "0"),
            slack_pb2.Settings(false_confirm_target=0.05, false_abstain_target=0),
        ),
    ],
)
def test_only_what_is_given_is_changed(
    arguments: tuple[str, ...], expected: slack_pb2.Settings
) -> None:
    assert wanted_settings(parser().parse_args(["settings", *arguments])) == expected


def test_a_default_is_shown_as_null() -> None:
    shown = as_json(slack_pb2.Settings(trust_mode=corpus_pb2.TRUST_MODE_RELAXED))
    assert shown == {
        "trust": "relaxed",
        "false_confirm_target": None,
        "false_abstain_target": None,
    }


def test_labels_are_read_a_line_each(tmp_path: Path) -> None:
    path = tmp_path / "labels.jsonl"
    path.write_text(
        '{"question": "Who owns it?", "answerable": true, "relevant_ids": ["a"]}\n\n'
        '{"question": "Why?", "answerable": false}\n'
    )
    assert list(read_labels(path)) == [
        generations_pb2.Label(question="Who owns it?", answerable=True, relevant_ids=["a"]),
        generations_pb2.Label(question="Why?", answerable=False),
    ]


@pytest.mark.parametrize(
    "line",
    [
        "not JSON",
        "[]",
        "null",
        '{"question": "Why?"}',
        '{"question": " ", "answerable": true}',
        '{"question": "Why?", "answerable": "yes"}',
        '{"question": "Why?", "answerable": true, "relevant_ids": "a"}',
        '{"question": "Why?", "answerable": true, "relevant_ids": [1]}',
    ],
)
def test_a_line_that_is_no_label_is_named(tmp_path: Path, line: str) -> None:
    path = tmp_path / "labels.jsonl"
    path.write_text('{"question": "Who?", "answerable": true}\n' + line + "\n")
    with pytest.raises(UsageError, match=r"labels\.jsonl:2: is no label"):
        list(read_labels(path))


@pytest.mark.parametrize(
    ("needed", "shown"),
    [
        ((4, 0), "Certification needs 4 more answerable and 0 more unanswerable"),
        ((-1, 3), "No number of labels would do at the error rate seen"),
    ],
)
def test_a_rejection_says_how_many_more_labels_would_do(
    needed: tuple[int, int], shown: str
) -> None:
    rejected = generations_pb2.Calibration(
        calibration_id="c-1",
        state="rejected",
        reason="too few",
        rule=generations_pb2.CALIBRATION_RULE_LOGISTIC,
        more_answerable_needed=needed[0],
        more_unanswerable_needed=needed[1],
    )
    assert shown in "\n".join(calibration_lines(rejected))
