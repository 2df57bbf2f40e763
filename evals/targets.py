"""The bounds that the figures are held against, set before the first measurement."""

from __future__ import annotations

from dataclasses import dataclass

from evals.datasets import TEST
from evals.ladder import Interval
from evals.measured import Measured, arm_orders, gain, hit_5, hit_12, mrr
from evals.tables import decimal

RECALL_12 = 0.65
CITED_SHARE = 0.6
# The described algorithm on the same conversations, measured with a prototype.
DESCRIBED_HIT_5, DESCRIBED_HIT_12 = 0.585, 0.733
TOLERANCE = 0.03


@dataclass(frozen=True)
class Target:
    """One bound: what was measured, what was wanted, whether it was met."""

    name: str
    measured: str
    wanted: str
    met: bool


def interval_text(interval: Interval) -> str:
    """A difference with its interval."""
    low, high = (decimal(bound, signed=True) for bound in (interval.low, interval.high))
    return f"{decimal(interval.difference, signed=True)} [{low}, {high}]"


def targets_of(beacon: Measured, conversations: Measured | None) -> list[Target]:
    """Every bound with what was measured. Those of answers count the test split alone."""
    orders = arm_orders(beacon)
    listed = [
        _at_least_zero(f"Beacon, all: MRR fused - {arm}", gain(orders, arm, mrr))
        for arm in ("lexical", "dense")
    ]
    if TEST in beacon.splits:
        listed += _test_targets(beacon.of_split(TEST))
    leaks = sum(bool(row.leaks) for each in (beacon, conversations) if each for row in each.replies)
    listed.append(Target("all questions: replies with a leak", str(leaks), "0", leaks == 0))
    if conversations is not None:
        listed += _conversation_targets(conversations)
    return listed


def _test_targets(test: Measured) -> list[Target]:
    searched, asked = test.search_figures(), test.ask_figures()
    recall = min(searched.recall_12, searched.recall_12_stating)
    return [
        Target(
            "Beacon test: recall@12, graded / stating",
            f"{decimal(searched.recall_12)} / {decimal(searched.recall_12_stating)}",
            f">= {RECALL_12} both",
            recall >= RECALL_12,
        ),
        Target(
            "Beacon test: answered citing a graded message",
            f"{decimal(asked.cited_share)} (false abst. {decimal(asked.false_abstention)})",
            f">= {CITED_SHARE}",
            asked.cited_share >= CITED_SHARE,
        ),
        Target(
            "Beacon test: stale shown as current",
            str(asked.stale_as_current),
            "0",
            asked.stale_as_current == 0,
        ),
    ]


def _conversation_targets(measured: Measured) -> list[Target]:
    orders = arm_orders(measured)
    name = measured.dataset.workspace
    better = [
        Target(f"{name}: {label} fused - {arm}", interval_text(found), "> 0", found.difference > 0)
        for label, figure in (("hit@5", hit_5), ("hit@12", hit_12))
        for arm in ("lexical", "dense")
        for found in [gain(orders, arm, figure)]
    ]
    served = measured.search_figures()
    near = [
        _near(f"{name}: {label} served", value, described)
        for label, value, described in (
            ("hit@5", served.hit_5, DESCRIBED_HIT_5),
            ("hit@12", served.hit_12, DESCRIBED_HIT_12),
        )
    ]
    return better + near


def _near(name: str, value: float, described: float) -> Target:
    # Rounded as printed, so that a figure and its verdict agree.
    met = round(abs(value - described), 3) <= TOLERANCE
    return Target(name, decimal(value), f"{described} +- {TOLERANCE}", met)


def _at_least_zero(name: str, interval: Interval) -> Target:
    return Target(name, interval_text(interval), ">= 0", interval.difference >= 0)
