"""``make evals``. Exit status 0 when no reply leaked; missed targets are printed, not hidden."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path

from evals.asking import EvaluationError
from evals.confidence import as_json, confidence_targets, conversation_section, set_section
from evals.datasets import DEV, DatasetError, read_beacon, read_conversations, read_question_sets
from evals.measure import Outcome, Plan, measure
from evals.own_stack import ImportFailedError, environment_of, import_dataset, own_stack
from evals.report import document, sections_of, terminal
from evals.results import Json, results
from evals.sections import Section
from evals.targets import targets_of
from services.runtime.callers import CallersFileError
from services.runtime.config import ConfigError, Settings
from services.stack.stack import StackError

HOME = Path(".recall-evals")
PORT_BASE = 7600
BEACON, BEACON_QUESTIONS = Path("evals/beacon"), Path("evals/beacon.jsonl")
OWN_SETS = Path("evals/confidence")
CONVERSATIONS = Path("../shared/data/locomo-dev")
DOCUMENT = Path("docs/evaluation.md")
EXPECTED = (
    EvaluationError,
    ImportFailedError,
    DatasetError,
    StackError,
    ConfigError,
    CallersFileError,
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the evaluation; a fault is one line on stderr and status 1."""
    options = parser().parse_args(arguments)
    try:
        return _run(options)
    except EXPECTED as error:
        print(error, file=sys.stderr)
        return 1


def parser() -> argparse.ArgumentParser:
    """The command line."""
    command = argparse.ArgumentParser(
        prog="python -m evals", description="Measure retrieval and answers on labelled questions."
    )
    command.add_argument(
        "--reuse", action="store_true", help="use the running stack (RECALL_HOME, PORT_BASE)"
    )
    command.add_argument("--fresh", action="store_true", help="build the indexes anew")
    command.add_argument("--port-base", type=int, default=PORT_BASE, help="of the own stack")
    command.add_argument(
        "--split", choices=("all", DEV), default="all", help="dev: never look at the test split"
    )
    command.add_argument("--beacon-only", action="store_true", help="leave the conversations out")
    command.add_argument(
        "--conversation-asks",
        type=int,
        default=12,
        metavar="N",
        help="conversation questions to ask, of each type (search is measured on all)",
    )
    return command


def _run(options: argparse.Namespace) -> int:
    plan = _plan(options)
    environ = (
        os.environ
        if options.reuse
        else environment_of(os.environ, HOME.absolute(), options.port_base)
    )
    stack = nullcontext() if options.reuse else own_stack(environ, fresh=options.fresh, say=_say)
    with stack:
        for dataset in plan.datasets:
            import_dataset(dataset, environ, *(() if options.reuse else ("--embedder", "local")))
        outcome = asyncio.run(measure(plan, environ, _say))
    targets = targets_of(outcome.beacon, outcome.conversations)
    if outcome.conversations_confidence is not None:
        targets += confidence_targets(CONVERSATIONS.name, outcome.conversations_confidence)
    confidence = _confidence_sections(outcome)
    sections = sections_of(outcome.beacon, outcome.conversations, targets, confidence)
    print(terminal(sections))
    today = datetime.now(UTC).date()
    told = results(today.isoformat(), targets, outcome.measured)
    told["confidence"] = _confidence_results(outcome)
    settings = Settings(environ)
    (settings.home() / "results.json").write_text(json.dumps(told, indent=1), "utf-8")
    if options.split == "all" and outcome.conversations is not None and not options.reuse:
        page = document(today, outcome.embedder, outcome.measured, sections)
        DOCUMENT.write_text(page, "utf-8")
    else:
        _say(f"{DOCUMENT} is left as it was: only a run of everything writes it")
    return int(outcome.leaked)


def _confidence_sections(outcome: Outcome) -> list[Section]:
    sections = [set_section(outcome.beacon_confidence)]
    if outcome.conversations_confidence is not None:
        name = CONVERSATIONS.name
        sections.append(conversation_section(name, outcome.conversations_confidence))
    return sections


def _confidence_results(outcome: Outcome) -> Json:
    told = {"beacon": as_json(outcome.beacon_confidence)}
    if outcome.conversations_confidence is not None:
        told[CONVERSATIONS.name] = as_json(outcome.conversations_confidence)
    return told


def _plan(options: argparse.Namespace) -> Plan:
    beacon = read_beacon(BEACON, BEACON_QUESTIONS)
    if options.split != "all":
        beacon = beacon.of_split(options.split)
    conversations = None
    if not options.beacon_only:
        if CONVERSATIONS.exists():
            conversations = read_conversations(CONVERSATIONS)
        else:
            _say(f"{CONVERSATIONS} is not there: measuring Beacon only")
    own_sets = read_question_sets(OWN_SETS, beacon) if options.split == "all" else ()
    return Plan(beacon, conversations, options.conversation_asks, own_sets)


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
