"""Labelled questions: what calibration is measured on. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from services.runtime.errors import invalid


@dataclass(frozen=True)
class Label:
    """A question, whether the corpus answers it, and ids of what does."""

    question: str
    answerable: bool
    relevant_ids: tuple[str, ...] = ()


def canonical(labels: Iterable[Label]) -> str:
    """Canonical JSON: the same labels in any order give the same text.

    Raises CallError INVALID_ARGUMENT for a question that is empty or stands twice.
    """
    rows = sorted(labels, key=lambda label: label.question)
    for label, following in zip(rows, [*rows[1:], None], strict=True):
        if not label.question.strip():
            raise invalid("labels", "holds an empty question")
        if following and following.question == label.question:
            raise invalid("labels", f"holds a question twice: {label.question[:80]!r}")
    stored = [
        {
            "answerable": label.answerable,
            "question": label.question,
            "relevant_ids": sorted(set(label.relevant_ids)),
        }
        for label in rows
    ]
    return json.dumps(stored, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def digest(text: str) -> str:
    """SHA-256 (hex) of canonical labels."""
    return hashlib.sha256(text.encode()).hexdigest()


def stored_labels(rows: Sequence[dict[str, Any]]) -> list[Label]:
    """Labels of their stored form."""
    return [Label(row["question"], row["answerable"], tuple(row["relevant_ids"])) for row in rows]


def still_labelled(labels: Iterable[Label], erased: Collection[str]) -> list[Label]:
    """Labels that still say something: an answerable one whose every answer was erased does not."""
    return [
        label
        for label in labels
        if not (label.answerable and label.relevant_ids and set(label.relevant_ids) <= set(erased))
    ]
