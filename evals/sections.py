"""The measured figures as titled blocks of text, at most 100 columns wide."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from evals import judgements
from evals.datasets import Dataset
from evals.figures import (
    Asked,
    AskFigures,
    Found,
    Miss,
    SearchFigures,
    asked_by_kind,
    by_kind,
    misses,
    outcomes,
    search_figures,
)
from evals.measured import Measured, arm_orders, gain, hit_5, hit_12, mrr
from evals.tables import decimal, share, table, wrapped
from evals.targets import Target, interval_text

SEARCH_HEADER = (
    *("type", "n", "recall@12", "stating", "hit@1", "hit@5", "hit@12", "MRR", "nDCG@10"),
    "stale first",
)
ASK_HEADER = (
    *("type", "cites evidence", "cites answer", "false abst.", "abstained", "stale", "leaks"),
)
LADDER_HEADER = ("order", "n", "hit@1", "hit@5", "hit@12", "recall@12", "MRR")
PROTOCOL_ONLY = "stand-in (protocol only)"


@dataclass(frozen=True)
class Section:
    """A titled block of lines."""

    title: str
    lines: Sequence[str]


def target_section(targets: Sequence[Target]) -> Section:
    """Every bound, what was measured, and the verdict."""
    rows = [
        (target.name, target.measured, target.wanted, "met" if target.met else "MISSED")
        for target in targets
    ]
    return Section("Targets", table(("target", "measured", "wanted", ""), rows))


def search_section(title: str, found: Sequence[Found]) -> Section:
    """Search figures by question type."""
    rows = [(kind, *_search_cells(figures)) for kind, figures in by_kind(found)]
    return Section(title, table(SEARCH_HEADER, rows, rule_before_last=True))


def ask_section(title: str, measured: Measured) -> Section:
    """Ask figures by question type, and how the asks ended."""
    rows = [
        (kind, *_ask_cells(figures))
        for kind, figures in asked_by_kind(measured.asked, measured.dataset.messages)
    ]
    return Section(
        title,
        [
            *table(ASK_HEADER, rows, rule_before_last=True),
            "",
            f"outcomes: {_counted(outcomes(measured.asked))}",
            f"writer:   {_counted(Counter(row.writer or 'none' for row in measured.asked))}",
            f"order by: {_counted(Counter(row.tier or 'none' for row in measured.asked))}",
            f"degraded: {_counted(Counter(name for a in measured.asked for name in a.degraded))}",
        ],
    )


def ladder_section(title: str, measured: Measured) -> Section:
    """Lexical, dense and both, with paired intervals; below, the order that was served."""
    orders = arm_orders(measured)
    rows: list[Sequence[str]] = [
        (name, *_ladder_cells(search_figures(found))) for name, found in orders.items()
    ]
    rows.append(("served (first 50)", *_ladder_cells(measured.search_figures())))
    if measured.reranked:
        rows.append((PROTOCOL_ONLY, *_ladder_cells(search_figures(measured.reranked))))
    differences = [
        (f"{label} fused - {arm}", interval_text(gain(orders, arm, figure)))
        for label, figure in (("MRR", mrr), ("hit@5", hit_5), ("hit@12", hit_12))
        for arm in ("lexical", "dense")
    ]
    agreement = _agreement(orders["fused"], measured.found)
    return Section(
        title,
        [
            *table(LADDER_HEADER, rows),
            "",
            *table(("paired difference", "mean and 95 % interval"), differences),
            "",
            f"The served order is the fused order computed here in {agreement} questions.",
        ],
    )


def miss_section(title: str, found: Sequence[Found]) -> Section:
    """Which questions lack a message that states the answer, by type."""
    listed = misses(found)
    lines = [
        "Of the messages that state the answer: none in the evidence, or some (found/all);",
        "+ marks a supporting message in the evidence.",
        "",
    ]
    for kind, _ in by_kind(found)[:-1]:
        of_kind = [miss for miss in listed if miss.kind == kind]
        asked = sum(row.question.kind == kind for row in found)
        lines.append(f"{kind}: {len(of_kind)} of {asked}")
        if of_kind:
            lines += wrapped([_miss(miss) for miss in of_kind])
    return Section(title, lines)


def miss_count_section(title: str, found: Sequence[Found]) -> Section:
    """How many questions lack evidence, by type, where they are too many to list."""
    listed = misses(found)
    rows = []
    for kind, figures in by_kind(found):
        of_kind = [miss for miss in listed if kind in (miss.kind, "all")]
        nothing = sum(miss.stating_found == 0 for miss in of_kind)
        rows.append((kind, str(figures.questions), str(nothing), str(len(of_kind) - nothing)))
    header = ("type", "n", "nothing found", "a part missing")
    return Section(title, table(header, rows, rule_before_last=True))


def fault_section(title: str, measured: Measured) -> Section:
    """The ids behind what went wrong in answers."""
    stale = judgements.presents_stale_as_current
    asked = measured.asked
    groups: Mapping[str, list[Asked]] = {
        "answered, citing no graded message": [
            a
            for a in asked
            if a.question.answerable
            and judgements.is_answered(a.given)
            and not judgements.cites_evidence(a.question, a.given)
        ],
        "abstained though answerable": [
            a for a in asked if a.question.answerable and judgements.is_abstained(a.given)
        ],
        "answered though unanswerable": [
            a for a in asked if not a.question.answerable and judgements.is_answered(a.given)
        ],
        "stale shown as current": [
            a for a in asked if stale(a.question, a.given, measured.dataset.messages)
        ],
        "stale cited, the correction not in the evidence": [
            a for a in asked if judgements.cites_stale_uncorrected(a.question, a.given)
        ],
        "leaks": [a for a in asked if a.leaks],
    }
    lines = []
    for name, rows in groups.items():
        lines.append(f"{name}: {len(rows)}")
        if rows:
            lines += wrapped([row.question.question_id for row in rows])
    return Section(title, lines)


def leak_lines(measured: Iterable[Measured]) -> list[str]:
    """Every leak: the question, where in the reply, and what."""
    return [
        f"{row.question.question_id}: {leak}"
        for each in measured
        for row in each.replies
        for leak in row.leaks
    ]


def dataset_line(dataset: Dataset) -> str:
    """What a data set holds."""
    answerable = sum(question.answerable for question in dataset.questions)
    return (
        f"{dataset.workspace}: {len(dataset.messages)} messages, {len(dataset.questions)} "
        f"questions, {len(dataset.questions) - answerable} of them unanswerable"
    )


def _search_cells(figures: SearchFigures) -> tuple[str, ...]:
    values = (figures.recall_12, figures.recall_12_stating, figures.hit_1, figures.hit_5)
    rest = (figures.hit_12, figures.mrr, figures.ndcg_10)
    stale = f"{figures.stale_first}/{figures.with_stale}" if figures.with_stale else "-"
    return (str(figures.questions), *map(decimal, (*values, *rest)), stale)


def _ladder_cells(figures: SearchFigures) -> tuple[str, ...]:
    values = (figures.hit_1, figures.hit_5, figures.hit_12, figures.recall_12, figures.mrr)
    return (str(figures.questions), *map(decimal, values))


def _ask_cells(figures: AskFigures) -> tuple[str, ...]:
    return (
        share(figures.cited_evidence, figures.answerable),
        share(figures.cited_answer, figures.answerable),
        share(figures.falsely_abstained, figures.answerable),
        share(figures.rightly_abstained, figures.unanswerable),
        str(figures.stale_as_current),
        str(figures.leaks),
    )


def _miss(miss: Miss) -> str:
    part = f" ({miss.stating_found}/{miss.stating})" if miss.stating_found else ""
    return f"{miss.question_id}{part}{'+' if miss.supporting_found else ''}"


def _counted(counter: Counter[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in sorted(counter.items())) or "nothing"


def _agreement(computed: Sequence[Found], found: Sequence[Found]) -> str:
    served = [row.served for row in found if row.question.grades]
    same = sum(
        row.served[: len(ranking)] == ranking for row, ranking in zip(computed, served, strict=True)
    )
    return f"{same} of {len(served)}"
