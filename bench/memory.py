"""The memory of every process while a large archive is imported with the embedding lane off."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.machine import machine
from bench.processes import Peak, Watch, children_of, forget_peak, peak_of
from bench.slack_export import MEGABYTE, Written, write_export
from evals.own_stack import environment_of
from evals.tables import table
from services.stack.postgres import EmbeddedPostgres
from services.stack.processes import Processes
from services.stack.stack import Stack

LIMIT_MEGABYTES = 300
COMMAND = "recall import"
POSTGRES = "postgres"
WORKER = "ingest-worker"

Say = Callable[[str], None]

# Retrieve serves before its model is loaded; loading is no part of an import.
SETTLE_SECONDS = 6

EXPLANATION = """\
start         the most resident until the import began (VmHWM): retrieve loads its model then.
resident      the most that one process had resident during both imports (VmHWM). A PostgreSQL
              process counts the shared buffers (128 MB) that it touched as its own; the figure is
              that of the largest one.
proportional  the group together, shared pages counted once (Pss), at the worst sample.
Not shown: the embedding worker (stopped, so vectors stay empty), the system's file cache, archives
of another shape, several imports at a time. The words are invented: more different ones than a
language has, so the full-text index is larger. Speed depends on what else the machine does."""


class ImportFailedError(Exception):
    """The import under measurement failed; it has said why."""


@dataclass(frozen=True)
class Measured:
    """One archive, imported twice: the second time nothing is new."""

    archive: Written
    imported: int
    seconds: float
    seconds_again: float
    start: Mapping[str, int]
    peaks: Mapping[str, Peak]

    def is_over(self, process: str) -> bool:
        """Whether a process had more resident than it may."""
        return self.peaks[process].resident > LIMIT_MEGABYTES * MEGABYTE


def import_memory(sizes: Sequence[int], port_base: int, say: Say) -> bool:
    """Measure imports of these sizes in megabytes and print tables. True within the limit.

    Raises StackError when the stack does not start, ImportFailedError when an import fails.
    """
    print(f"Memory of an import with the embedding lane off\n{machine()}\n")
    results = []
    for megabytes in sizes:
        results.append(_measure(megabytes, port_base, say))
        print("\n".join(_lines(results[-1])), flush=True)
        print()
    if len(results) > 1:
        print("\n".join(_growth(results)))
        print()
    print(EXPLANATION)
    return not any(result.is_over(name) for result in results for name in result.peaks)


def _measure(megabytes: int, port_base: int, say: Say) -> Measured:
    with tempfile.TemporaryDirectory(prefix="recall-bench-") as folder:
        home, path = Path(folder, "home"), Path(folder, "export.zip")
        say(f"writing an export of {megabytes} MB")
        archive = write_export(path, megabytes)
        stack = Stack(home, environment_of(os.environ, home, port_base))
        try:
            stack.up(say)
            Processes(home).stop((WORKER,))
            return _import_twice(stack, archive, path, say)
        finally:
            stack.down(say)


def _import_twice(stack: Stack, archive: Written, path: Path, say: Say) -> Measured:
    time.sleep(SETTLE_SECONDS)
    running = Processes(stack.home).running()
    start = {name: peak_of(pid) for name, pid in running.items()}
    for pid in running.values():
        forget_peak(pid)
    watch = Watch()
    say(f"importing {archive.records} records")
    imported, seconds = _import(stack, path, watch)
    say("importing them again")
    _, seconds_again = _import(stack, path, watch)
    return Measured(archive, imported, seconds, seconds_again, start, watch.peaks)


def _import(stack: Stack, path: Path, watch: Watch) -> tuple[int, float]:
    """Messages imported and the seconds it took."""
    command = (sys.executable, "-m", "services.cli", "import", str(path))
    options = ("--workspace", "bench", "--embedder", "local", "--no-wait", "--json")
    begin = time.monotonic()
    with subprocess.Popen(
        (*command, *options), env=dict(stack.environ), stdout=subprocess.PIPE
    ) as process:
        with watch.running(lambda: _groups(stack, process.pid)):
            output, _ = process.communicate()
        seconds = time.monotonic() - begin
    if process.returncode != 0:
        raise ImportFailedError("The import failed (see above).")
    return json.loads(output)["imported"], seconds


def _groups(stack: Stack, command: int) -> dict[str, Sequence[int]]:
    services = {name: [pid] for name, pid in Processes(stack.home).running().items()}
    postmaster = EmbeddedPostgres(stack.home / POSTGRES, stack.port(POSTGRES)).running_pid()
    database = [postmaster, *children_of(postmaster)] if postmaster else []
    return {COMMAND: [command], **services, POSTGRES: database}


def _lines(result: Measured) -> list[str]:
    size = result.archive.size_bytes / MEGABYTE
    title = (
        f"{size:.0f} MB, {result.archive.records} records: {result.imported} imported in "
        f"{result.seconds:.0f} s ({result.imported / result.seconds:.0f} a second); again, "
        f"nothing new, in {result.seconds_again:.0f} s"
    )
    rows = [
        (
            name,
            str(peak.processes),
            _megabytes(result.start[name]) if name in result.start else "-",
            _megabytes(peak.resident),
            _megabytes(peak.proportional),
            "over" if result.is_over(name) else "within",
        )
        for name, peak in result.peaks.items()
    ]
    header = (
        "process",
        "number",
        "start MB",
        "resident MB",
        "proportional MB",
        f"{LIMIT_MEGABYTES} MB",
    )
    return [title, *table(header, rows)]


def _growth(results: Sequence[Measured]) -> list[str]:
    """Peak resident memory by size; the ratio says how it grows."""
    sizes = [f"{result.archive.size_bytes / MEGABYTE:.0f} MB" for result in results]
    rows = []
    for name in results[0].peaks:
        peaks = [result.peaks[name].resident for result in results]
        rows.append((name, *map(_megabytes, peaks), f"{peaks[-1] / peaks[0]:.2f}"))
    return table(("resident MB at", *sizes, "last / first"), rows)


def _megabytes(size_bytes: int) -> str:
    return f"{size_bytes / MEGABYTE:.0f}"
