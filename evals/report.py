"""The run's sections in reading order, on the terminal and as docs/evaluation.md."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from importlib.resources import files

from evals.measured import Measured
from evals.sections import (
    Section,
    ask_section,
    dataset_line,
    fault_section,
    ladder_section,
    leak_lines,
    miss_count_section,
    miss_section,
    search_section,
    target_section,
)
from evals.targets import Target


def sections_of(
    beacon: Measured,
    conversations: Measured | None,
    targets: Sequence[Target],
    confidence: Sequence[Section] = (),
) -> list[Section]:
    """Every table of a run; the targets come last, where a terminal shows them."""
    listed = []
    for split in beacon.splits:
        part = beacon.of_split(split)
        listed += [
            search_section(f"Beacon, {split} split: search", part.found),
            ask_section(f"Beacon, {split} split: answers", part),
            miss_section(f"Beacon, {split} split: evidence that search missed", part.found),
            fault_section(f"Beacon, {split} split: answers that went wrong", part),
        ]
    listed.append(ladder_section("Beacon, all questions: one arm against both", beacon))
    if conversations is not None:
        listed += _conversation_sections(conversations)
    listed += confidence
    measured = [each for each in (beacon, conversations) if each is not None]
    leaks = leak_lines(measured)
    listed.append(Section("Leaks", leaks or ["none"]))
    listed.append(target_section(targets))
    return listed


def _conversation_sections(measured: Measured) -> list[Section]:
    name = measured.dataset.workspace
    listed = [
        search_section(f"{name}: search", measured.found),
        ladder_section(f"{name}: one arm against both", measured),
        miss_count_section(f"{name}: evidence that search missed", measured.found),
    ]
    if measured.asked:
        title = f"{name}: answers to a fixed sample of {len(measured.asked)} questions"
        listed.append(ask_section(title, measured))
    return listed


def terminal(sections: Sequence[Section]) -> str:
    """The sections for a terminal."""
    blocks = ["\n".join((s.title, "=" * len(s.title), *s.lines)) for s in sections]
    return "\n\n".join(blocks)


def document(
    day: date, embedder: str, measured: Sequence[Measured], sections: Sequence[Section]
) -> str:
    """docs/evaluation.md. The targets come first here."""
    page = files("evals").joinpath("evaluation.md").read_text("utf-8")
    data = "\n".join(f"- {dataset_line(each.dataset)}" for each in measured)
    ordered = [sections[-1], *sections[:-1]]
    blocks = [f"## {s.title}\n\n```text\n{chr(10).join(s.lines)}\n```" for s in ordered]
    filled = page.replace("{day}", day.isoformat()).replace("{embedder}", embedder)
    return filled.replace("{data}", data).replace("{figures}", "\n\n".join(blocks))
