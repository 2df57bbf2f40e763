"""The hand-written question sets, and the figures made of confidences."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from evals.confidence import (
    Judged,
    area,
    at_abstention,
    by_conversation,
    calibrated,
    confidence_targets,
    conversation_section,
    set_section,
    ungrouped,
)
from evals.datasets import Dataset, Question, read_beacon, read_question_sets
from evals.signalled import Signalled
from services.calibration.signals import AUTHOR_MARGIN, BEST_COSINE

EVALS = Path(__file__).parents[2] / "evals"
SETS = {"absent-topics", "near-misses", "who-said-it"}


@pytest.fixture(scope="module")
def beacon() -> Dataset:
    return read_beacon(EVALS / "beacon", EVALS / "beacon.jsonl")


@pytest.fixture(scope="module")
def questions(beacon: Dataset) -> tuple[Question, ...]:
    return read_question_sets(EVALS / "confidence", beacon)


def test_each_set_has_sixty_questions_and_none_twice(questions: tuple[Question, ...]) -> None:
    sizes = Counter(question.kind for question in questions)
    assert set(sizes) == SETS
    assert min(sizes.values()) >= 60
    assert len({question.text for question in questions}) == len(questions)
    assert len({question.question_id for question in questions}) == len(questions)


def test_labels_point_at_what_the_reader_may_read(
    beacon: Dataset, questions: tuple[Question, ...]
) -> None:
    for question in questions:
        assert bool(question.grades) is question.answerable
        for message_id in question.grades:
            assert beacon.messages[message_id].channel in question.readable


def test_none_of_them_is_one_of_beacons(beacon: Dataset, questions: tuple[Question, ...]) -> None:
    asked = {question.text.lower() for question in beacon.questions}
    assert not [question.text for question in questions if question.text.lower() in asked]


def test_who_said_it_asks_once_of_the_author_and_once_of_somebody_else(
    questions: tuple[Question, ...],
) -> None:
    lines = (EVALS / "beacon" / "messages.jsonl").read_text("utf-8").splitlines()
    wrote = {
        f"synthetic:{message['channel']}:{message['id']}": message["author"]
        for message in map(json.loads, lines)
    }
    asked = [question for question in questions if question.kind == "who-said-it"]
    for own, other in zip(asked[::2], asked[1::2], strict=True):
        [message_id] = own.grades
        assert wrote[message_id] in own.text
        assert wrote[message_id] not in other.text
        assert (own.answerable, other.answerable) == (True, False)


def signalled(
    name: str, answerable: bool, cosine: float, margin: float, kind: str = "plain", split: str = ""
) -> Signalled:
    question = Question(
        question_id=name,
        text=name,
        kind=kind,
        answerable=answerable,
        grades={},
        readable=frozenset((f"talk {name[-1]}",)),
        split=split,
    )
    return Signalled(question, {BEST_COSINE: cosine, AUTHOR_MARGIN: margin})


def judged(answerable: bool, confidence: float) -> Judged:
    return Judged(signalled("q", answerable, confidence, 0.0), confidence, confidence >= 0.5)


@pytest.mark.parametrize(
    ("answerable", "unanswerable", "wanted", "expected"),
    [
        ([0.9, 0.3], [0.1, 0.2, 0.4, 0.8], 0.5, (0.5, 0.5)),
        ([0.9, 0.7], [0.1, 0.2, 0.4, 0.8], 0.5, (0.5, 0.0)),
        ([0.9, 0.3], [0.1, 0.2, 0.4, 0.8], 0.0, (0.0, 0.0)),
        # Equal confidences are abstained together or not at all.
        ([0.5, 0.5], [0.5, 0.5], 0.5, (0.0, 0.0)),
    ],
)
def test_false_abstention_at_a_share_abstained(
    answerable: list[float],
    unanswerable: list[float],
    wanted: float,
    expected: tuple[float, float],
) -> None:
    rows = [judged(True, each) for each in answerable] + [
        judged(False, each) for each in unanswerable
    ]
    assert at_abstention(rows, lambda row: row.confidence, wanted) == expected


def talks(apart: float) -> list[Signalled]:
    """Five conversations in which only who said it tells the classes apart."""
    return [
        signalled(
            f"{number} {answerable} {talk}",
            answerable,
            0.5 + number % 7 / 100,
            number % 10 / 10 + apart * answerable,
        )
        for talk in "abcde"
        for number in range(20)
        for answerable in (True, False)
    ]


def test_targets_and_tables_of_conversations() -> None:
    good = calibrated(talks(2.0), by_conversation)
    told = {target.name: target.met for target in confidence_targets("talks", good)}
    assert told == {
        "talks: AUC of the confidence": True,
        "talks: false abst. at 57% abstention": True,
        # That it certifies is what was not wanted of the conversations.
        "talks: certified at the defaults": False,
    }
    assert area(good.rows, lambda row: row.cosine) == pytest.approx(0.5)
    poor = calibrated(talks(0.1), by_conversation)
    told = {target.name: target.met for target in confidence_targets("talks", poor)}
    assert told == {
        "talks: AUC of the confidence": False,
        "talks: false abst. at 57% abstention": False,
        "talks: certified at the defaults": True,
    }
    lines = conversation_section("talks", poor).lines
    assert any("At the defaults refused:" in line for line in lines)
    assert max(map(len, lines)) <= 100


def test_a_set_without_answerable_questions_is_held_against_the_others() -> None:
    plain = [
        signalled(f"{n} {yes}", yes, 0.5 + 0.3 * yes + n / 1000, 0.0, "identifier", "dev")
        for n in range(20)
        for yes in (True, False)
    ]
    own = [signalled(f"own {n}", False, 0.5 + n / 1000, 0.0, "absent-topics") for n in range(20)]
    lines = set_section(calibrated([*plain, *own], ungrouped)).lines
    [row] = [line.split() for line in lines if line.startswith("absent-topics")]
    assert row[1:5] == ["20", "20", "1.000", "1.000"]
    assert max(map(len, lines)) <= 100
