"""How well the confidence tells answerable questions from others, beside the best cosine."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from evals.sections import Section
from evals.signalled import Signalled
from evals.tables import decimal, share, table, wrapped
from evals.targets import Target
from services.calibration.certification import Errors, Targets, certify
from services.calibration.fitting import Fit, Sample, fit
from services.calibration.reference import area_under_curve
from services.calibration.signals import BEST_COSINE

AREA = 0.78
ABSTENTION = 0.57
FALSE_ABSTENTION = 0.20
# The defaults of a workspace.
GOAL = Targets()
BEACON = "Beacon's questions"
COMPARED_HEADER = ("signal", "AUC", "abstained, unanswerable", "false abst.")
SETS_HEADER = (
    *("set", "answerable", "unanswerable", "AUC", "AUC of cosine", "false confirms"),
    "false abst.",
)


@dataclass(frozen=True)
class Judged:
    """A question, and what a model that had not seen it made of it."""

    signalled: Signalled
    confidence: float
    is_passed: bool

    @property
    def answerable(self) -> bool:
        """Its label."""
        return self.signalled.question.answerable

    @property
    def cosine(self) -> float:
        """The best cosine of any hit; -1 without one."""
        return self.signalled.signals.get(BEST_COSINE, -1.0)


@dataclass(frozen=True)
class Calibrated:
    """Questions, and the fit that judged them."""

    rows: tuple[Judged, ...]
    fitted: Fit


Value = Callable[[Judged], float]


def calibrated(signalled: Sequence[Signalled], group: Callable[[Signalled], str]) -> Calibrated:
    """Fit and judge out of fold; questions of one group are never on both sides."""
    samples = [
        Sample(each.question.text, each.question.answerable, each.signals, group(each))
        for each in signalled
    ]
    fitted = fit(samples, GOAL)
    judged = zip(signalled, fitted.confidences, fitted.passed, strict=True)
    return Calibrated(tuple(Judged(*each) for each in judged), fitted)


def by_conversation(each: Signalled) -> str:
    """The one channel that a conversation is."""
    return "".join(sorted(each.question.readable))


def ungrouped(_: Signalled) -> str:
    """Each question by itself."""
    return ""


def area(rows: Iterable[Judged], value: Value) -> float:
    """P(answerable above unanswerable), ties half; NaN without both."""
    listed = list(rows)
    found = area_under_curve(
        [value(row) for row in listed if row.answerable],
        [value(row) for row in listed if not row.answerable],
    )
    return math.nan if found is None else found


def at_abstention(rows: Sequence[Judged], value: Value, wanted: float) -> tuple[float, float]:
    """Shares abstained of unanswerable and of answerable questions, at the lowest cut that abstains
    on ``wanted`` of the unanswerable ones."""
    bad = sorted(value(row) for row in rows if not row.answerable)
    good = [value(row) for row in rows if row.answerable]
    cut = bad[min(math.ceil(wanted * len(bad)), len(bad) - 1)]
    return (
        sum(each < cut for each in bad) / len(bad),
        sum(each < cut for each in good) / len(good),
    )


def conversation_section(name: str, conversations: Calibrated) -> Section:
    """Confidence and best cosine on the same searches, and what certification says."""
    rows = []
    for label, value in (("confidence", _confidence), ("best cosine", _cosine)):
        abstained, falsely = at_abstention(conversations.rows, value, ABSTENTION)
        cells = (area(conversations.rows, value), abstained, falsely)
        rows.append((label, *map(decimal, cells)))
    title = f"{name}: confidence, each conversation judged by the others"
    return Section(
        title, [*table(COMPARED_HEADER, rows), "", *_certification(conversations.fitted.errors)]
    )


def set_section(beacon: Calibrated) -> Section:
    """Each labelled set against its own answerable questions, else against Beacon's."""
    sets = sorted({row.signalled.question.kind for row in beacon.rows if _is_own(row)})
    plain = [row for row in beacon.rows if not _is_own(row)]
    rows = [(BEACON, *_set_cells(plain))]
    for name in sets:
        own = [row for row in beacon.rows if row.signalled.question.kind == name and _is_own(row)]
        if not any(row.answerable for row in own):
            own += [row for row in plain if row.answerable]
        rows.append((name, *_set_cells(own)))
    rows.append(("all", *_set_cells(beacon.rows)))
    return Section(
        "Beacon: confidence by set, out of fold, one calibration of all",
        [
            *table(SETS_HEADER, rows, rule_before_last=True),
            "",
            *_certification(beacon.fitted.errors),
        ],
    )


def confidence_targets(name: str, conversations: Calibrated) -> list[Target]:
    """The bounds on the conversations."""
    found = area(conversations.rows, _confidence)
    _, falsely = at_abstention(conversations.rows, _confidence, ABSTENTION)
    certified = certify(conversations.fitted.errors, GOAL).is_certified
    return [
        Target(f"{name}: AUC of the confidence", decimal(found), f">= {AREA}", found >= AREA),
        Target(
            f"{name}: false abst. at {ABSTENTION:.0%} abstention",
            decimal(falsely),
            f"<= {FALSE_ABSTENTION}",
            falsely <= FALSE_ABSTENTION,
        ),
        Target(
            f"{name}: certified at the defaults", "yes" if certified else "no", "no", not certified
        ),
    ]


def as_json(measured: Calibrated) -> dict[str, Any]:
    """Every question with what was made of it."""
    return {
        "errors": dataclasses.asdict(measured.fitted.errors),
        "weights": dict(measured.fitted.model.weights),
        "questions": [
            {
                "id": row.signalled.question.question_id,
                "set": row.signalled.question.kind,
                "answerable": row.answerable,
                "confidence": row.confidence,
                "passed": row.is_passed,
                "signals": dict(row.signalled.signals),
            }
            for row in measured.rows
        ],
    }


def _set_cells(rows: Sequence[Judged]) -> tuple[str, ...]:
    good = [row for row in rows if row.answerable]
    bad = [row for row in rows if not row.answerable]
    return (
        str(len(good)),
        str(len(bad)),
        decimal(area(rows, _confidence)),
        decimal(area(rows, _cosine)),
        share(sum(row.is_passed for row in bad), len(bad)),
        share(sum(not row.is_passed for row in good), len(good)),
    )


def _certification(errors: Errors) -> list[str]:
    verdict = certify(errors, GOAL)
    told = (
        f"false confirms {share(errors.false_confirms, errors.unanswerable)}, at most "
        f"{errors.false_confirm_bound:.3f}; false abstentions "
        f"{share(errors.false_abstains, errors.answerable)}, at most "
        f"{errors.false_abstain_bound:.3f} (95 %, one-sided)."
    )
    said = "certified" if verdict.is_certified else f"refused: {verdict.reason}"
    return wrapped(told.split()) + wrapped(f"At the defaults {said}.".split())


def _is_own(row: Judged) -> bool:
    return not row.signalled.question.split


def _confidence(row: Judged) -> float:
    return row.confidence


def _cosine(row: Judged) -> float:
    return row.cosine
