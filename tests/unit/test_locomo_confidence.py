"""What the confidence is worth on two-party chat, from the signals that retrieve measured there.

``data/locomo-dev-signals.json`` holds, of each question of ``locomo-dev``, its conversation (by
number), whether it is answerable, and its signals in the named order (null: not measurable), as
searched with the local embedder. It holds no text. ``make evals`` measures them anew.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evals.confidence import Calibrated, area, at_abstention, by_conversation, calibrated
from evals.datasets import Question
from evals.signalled import Signalled
from services.calibration.certification import Targets, certify

SIGNALS = Path(__file__).parent / "data" / "locomo-dev-signals.json"


@pytest.fixture(scope="module")
def judged() -> Calibrated:
    """Each conversation judged by a model of the other four."""
    stored = json.loads(SIGNALS.read_text("utf-8"))
    rows = []
    for number, (conversation, answerable, values) in enumerate(stored["questions"]):
        named = zip(stored["signals"], values, strict=True)
        question = Question(
            question_id=str(number),
            text=f"question {number}",
            kind="",
            answerable=bool(answerable),
            grades={},
            readable=frozenset({str(conversation)}),
        )
        rows.append(Signalled(question, {name: each for name, each in named if each is not None}))
    return calibrated(rows, by_conversation)


def test_the_confidence_tells_answerable_from_adversarial_questions(judged: Calibrated) -> None:
    assert (len(judged.rows), sum(row.answerable for row in judged.rows)) == (946, 709)
    assert area(judged.rows, lambda row: row.confidence) >= 0.78
    abstained, falsely = at_abstention(judged.rows, lambda row: row.confidence, 0.57)
    assert abstained >= 0.57
    assert falsely <= 0.20


def test_the_best_cosine_hardly_tells_them_apart(judged: Calibrated) -> None:
    assert area(judged.rows, lambda row: row.cosine) < 0.55
    _, falsely = at_abstention(judged.rows, lambda row: row.cosine, 0.57)
    assert falsely > 0.50


def test_the_defaults_refuse_to_certify_it(judged: Calibrated) -> None:
    verdict = certify(judged.fitted.errors, Targets())
    assert not verdict.is_certified
    assert "false-confirm" in verdict.reason and "false-abstain" in verdict.reason
    # More of the same labels would not help.
    assert min(verdict.more_answerable, verdict.more_unanswerable) < 0
