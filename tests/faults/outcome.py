"""What a run of kills showed, as a table and as findings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from evals.tables import table
from tests.faults.checks import Answers

MOST_SHOWN = 8


@dataclass
class Outcome:
    """``findings`` are the broken promises, by promise; every list must be empty."""

    kills: Mapping[str, int]
    acts: Mapping[str, int]
    events: Counter[str]
    answers: Answers
    searches: int
    outages: Mapping[str, int]
    messages: int
    gone: int
    drained_seconds: float | None
    findings: dict[str, list[str]] = field(default_factory=dict)
    title: str = ""

    @property
    def broken(self) -> list[str]:
        """Every finding as a line."""
        return [f"{promise}: {line}" for promise, found in self.findings.items() for line in found]

    def lines(self) -> list[str]:
        """The report."""
        return [
            self.title,
            "",
            *table(("killed", "times"), _rows(self.kills)),
            "",
            *table(("what happened", "number"), self._happened()),
            "",
            *table(("question ended", "number"), _rows(self.answers.ended)),
            *[f"  {count}× {reason}" for reason, count in sorted(self.answers.reasons.items())],
            "",
            *table(("promise", "broken"), _rows({p: len(f) for p, f in self.findings.items()})),
            *self._shown(),
        ]

    def _shown(self) -> list[str]:
        """The first findings of each promise."""
        shown = []
        for promise, found in self.findings.items():
            shown += [f"  {promise}: {line}" for line in found[:MOST_SHOWN]]
            if len(found) > MOST_SHOWN:
                shown.append(f"  {promise}: {len(found) - MOST_SHOWN} more")
        return shown

    def _happened(self) -> list[tuple[str, str]]:
        drained = self.drained_seconds
        return [
            *_rows(self.acts),
            *_rows({f"events {state}": count for state, count in sorted(self.events.items())}),
            ("messages that stand at the end", str(self.messages)),
            ("words deleted or replaced", str(self.gone)),
            ("searches", str(self.searches)),
            *_rows({f"searches told {reason}": n for reason, n in sorted(self.outages.items())}),
            ("queue drained after", "never" if drained is None else f"{drained:.1f} s"),
        ]


def _rows(counts: Mapping[str, int]) -> list[tuple[str, str]]:
    return [(name, str(count)) for name, count in counts.items()]
