"""How an evaluation chooses, judges and tells, without a stack."""

from collections import Counter
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from evals.datasets import Dataset, LabelledMessage, Question
from evals.figures import Asked, Found
from evals.judgements import GivenAnswer
from evals.measure import stratified
from evals.measured import Measured, arm_orders
from evals.own_stack import environment_of
from evals.report import document, sections_of, terminal
from evals.targets import targets_of

READER = frozenset({"ops"})
IDS = [f"synthetic:ops:m{number:02}" for number in range(20)]
MESSAGES = {
    message_id: LabelledMessage(
        message_id, "ops", datetime(2026, 8, 3, tzinfo=UTC) + timedelta(minutes=n), f"text {n}"
    )
    for n, message_id in enumerate(IDS)
}


def question(name: str, kind: str = "identifier", evidence: str = IDS[0]) -> Question:
    return Question(name, "what?", kind, True, {evidence: 2}, READER, split="test")


def unanswerable(name: str) -> Question:
    return Question(name, "what?", "unanswerable", False, {}, READER, split="test")


def measured(found: list[Found], asked: list[Asked]) -> Measured:
    questions = tuple(row.question for row in found)
    dataset = Dataset("beacon", Path("evals/beacon"), MESSAGES, questions)
    return Measured(dataset, tuple(found), tuple(asked))


GOOD = question("b1")
BOTH_ARMS = Found(GOOD, (IDS[0], IDS[1]), [(IDS[1],), (IDS[0],)], [(IDS[0],), (IDS[2],)])
DENIED = Found(unanswerable("b2"), (), [], [])
CITED = Asked(GOOD, GivenAnswer("answered", "yes", (IDS[0],), (IDS[0],)))
ABSTAINED = Asked(DENIED.question, GivenAnswer("abstained", "no"))


def verdicts(beacon: Measured) -> dict[str, bool]:
    return {target.name: target.met for target in targets_of(beacon, None)}


def test_a_good_run_meets_every_target() -> None:
    assert set(verdicts(measured([BOTH_ARMS, DENIED], [CITED, ABSTAINED])).values()) == {True}


@pytest.mark.parametrize(
    ("found", "asked", "missed"),
    [
        (BOTH_ARMS, Asked(GOOD, GivenAnswer("abstained")), "citing a graded message"),
        (Found(GOOD, (IDS[1],), [], []), CITED, "recall@12"),
        (Found(GOOD, (IDS[0],), [(IDS[0],)], [(IDS[1],)] * 3), CITED, "MRR fused - dense"),
        (Found(GOOD, (IDS[0],), [(IDS[0],)], [], ("hits: id",)), CITED, "with a leak"),
        (BOTH_ARMS, Asked(GOOD, CITED.given, ("answer.text: id",)), "with a leak"),
    ],
)
def test_a_missed_target_is_the_one_that_was_missed(
    found: Found, asked: Asked, missed: str
) -> None:
    names = [name for name, met in verdicts(measured([found], [asked])).items() if not met]
    assert len(names) == 1
    assert missed in names[0]


def test_targets_of_answers_wait_for_the_test_split() -> None:
    dev = Question("b1", "what?", "identifier", True, {IDS[0]: 2}, READER, split="dev")
    row = Found(dev, (IDS[0],), [(IDS[0],)], [])
    assert not any("test" in name for name in verdicts(measured([row], [])))


def test_the_ladder_orders_each_arm_by_its_own_list() -> None:
    orders = arm_orders(measured([BOTH_ARMS, DENIED], []))
    assert {name: [row.served for row in rows] for name, rows in orders.items()} == {
        "lexical": [(IDS[0], IDS[2])],
        "dense": [(IDS[1], IDS[0])],
        "fused": [(IDS[0], IDS[1], IDS[2])],
    }


def test_a_stratified_sample_is_the_same_in_any_order_and_even_over_types() -> None:
    questions = [question(f"q{n}", kind) for n in range(40) for kind in ("temporal", "single-hop")]
    sample = stratified(questions, 5)
    assert Counter(q.kind for q in sample) == {"temporal": 5, "single-hop": 5}
    assert {id(q) for q in stratified(questions[::-1], 5)} == {id(q) for q in sample}
    assert stratified(questions, 0) == []


def test_the_evaluation_has_neither_keys_nor_addresses_of_the_user() -> None:
    given = {
        "PATH": "/bin",
        "OPENAI_API_KEY": "k",
        "OPENAI_BASE_URL": "u",
        "OPEN_ROUTER": "k",
        "DATABASE_URL": "postgresql://x",
        "RECALL_INGEST_DATABASE_URL": "postgresql://x",
        "RECALL_POSTGRES_BIN": "/opt/bin",
        "RECALL_HOME": "/home/me/.recall",
        "PORT_BASE": "7400",
    }
    assert environment_of(given, Path("/evals"), 7600) == {
        "PATH": "/bin",
        "RECALL_POSTGRES_BIN": "/opt/bin",
        "RECALL_HOME": "/evals",
        "PORT_BASE": "7600",
    }


def test_every_line_of_a_report_fits_a_terminal_of_100_columns() -> None:
    many = [Found(question(f"b{n:03}", evidence=IDS[5]), (IDS[1],), [], []) for n in range(80)]
    rows = measured([BOTH_ARMS, DENIED, *many], [CITED, ABSTAINED])
    shown = terminal(sections_of(rows, rows, targets_of(rows, rows)))
    assert max(map(len, shown.splitlines())) <= 100
    assert "identifier: 80 of 81" in shown


def test_the_document_tells_date_data_and_every_section() -> None:
    rows = measured([BOTH_ARMS, DENIED], [CITED, ABSTAINED])
    sections = sections_of(rows, None, targets_of(rows, None))
    page = document(date(2026, 11, 30), "local", [rows], sections)
    assert "2026-11-30" in page
    assert "beacon: 20 messages, 2 questions, 1 of them unanswerable" in page
    assert all(f"## {section.title}\n" in page for section in sections)
    assert "{" not in page
