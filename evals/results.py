"""One run as JSON: every figure and every question, for whoever looks into a case."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from evals.figures import Asked, Found, asked_by_kind, by_kind
from evals.measured import Measured
from evals.targets import Target

Json = dict[str, Any]


def results(date: str, targets: Sequence[Target], measured: Sequence[Measured]) -> Json:
    """Everything that was measured."""
    return {
        "date": date,
        "targets": [dataclasses.asdict(target) for target in targets],
        "datasets": {each.dataset.workspace: _dataset(each) for each in measured},
    }


def _dataset(measured: Measured) -> Json:
    asked = {row.question.question_id: row for row in measured.asked}
    return {
        "splits": {
            split or "all": _figures(measured.of_split(split)) for split in _splits(measured)
        },
        "questions": [
            _question(row, asked.get(row.question.question_id)) for row in measured.found
        ],
    }


def _splits(measured: Measured) -> list[str]:
    return sorted({row.question.split for row in measured.found})


def _figures(measured: Measured) -> Json:
    ask = asked_by_kind(measured.asked, measured.dataset.messages)
    return {
        "search": {kind: dataclasses.asdict(figures) for kind, figures in by_kind(measured.found)},
        "ask": {kind: dataclasses.asdict(figures) for kind, figures in ask},
    }


def _question(found: Found, asked: Asked | None) -> Json:
    question = found.question
    told: Json = {
        "id": question.question_id,
        "type": question.kind,
        "split": question.split,
        "question": question.text,
        "answerable": question.answerable,
        "evidence": dict(question.grades),
        "stale": sorted(question.stale),
        "found": list(found.served),
        "leaks": [*found.leaks, *(asked.leaks if asked else ())],
    }
    if asked is not None:
        told |= {
            "outcome": asked.given.outcome,
            "text": asked.given.text,
            "cited": list(asked.given.cited),
            "degraded": list(asked.degraded),
        }
    return told
