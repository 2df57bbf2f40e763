"""Tables of text, at most 100 columns wide."""

from __future__ import annotations

import math
from collections.abc import Sequence

Row = Sequence[str]


def table(header: Row, rows: Sequence[Row], *, rule_before_last: bool = False) -> list[str]:
    """Lines of an aligned table: the first column to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    rule = "  ".join("-" * width for width in widths)
    lines = [_line(row, widths) for row in rows]
    if rule_before_last and len(lines) > 1:
        lines.insert(-1, rule)
    return [_line(header, widths), rule, *lines]


def decimal(value: float, *, signed: bool = False) -> str:
    """Three decimals; a dash where there is nothing to average."""
    if math.isnan(value):
        return "-"
    return f"{value:+.3f}" if signed else f"{value:.3f}"


def share(part: int, whole: int) -> str:
    """A count, its whole and their ratio; a dash of nothing."""
    return f"{part}/{whole} {part / whole:.2f}" if whole else "-"


def wrapped(words: Sequence[str], indent: str = "  ", width: int = 96) -> list[str]:
    """Words on as many lines as they need."""
    lines = [indent]
    for word in words:
        if len(lines[-1]) + len(word) + 1 > width and lines[-1] != indent:
            lines.append(indent)
        lines[-1] += word if lines[-1] == indent else f" {word}"
    return lines


def _line(cells: Row, widths: Sequence[int]) -> str:
    first, *others = (
        cell.ljust(width) if position == 0 else cell.rjust(width)
        for position, (cell, width) in enumerate(zip(cells, widths, strict=True))
    )
    return "  ".join((first, *others)).rstrip()
