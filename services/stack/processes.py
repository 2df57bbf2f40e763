"""The processes of a stack: what each runs, where it logs, whether it still lives.

``stack.json`` under RECALL_HOME holds each process's id and start time; both must match before a
process is taken for ours, since ids are given out again.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

STOP_SECONDS = 30.0


@dataclass(frozen=True)
class Program:
    """One process: its name, its Python module, and its health port (None: it has none)."""

    name: str
    module: str
    port_name: str | None
    # Only these get the database's URL.
    uses_database: bool = False
    # Started only when one of these is set; empty: always.
    only_with: tuple[str, ...] = ()

    def is_wanted(self, environ: Mapping[str, str]) -> bool:
        """Whether an environment asks for it."""
        return not self.only_with or any(environ.get(name, "").strip() for name in self.only_with)


SLACK_DOORS = ("RECALL_SLACK_SIGNING_SECRET", "RECALL_SLACK_APP_TOKEN")

PROGRAMS = (
    Program("ingest", "services.ingest", "ingest", uses_database=True),
    Program("ingest-worker", "services.ingest.worker", None, uses_database=True),
    Program("retrieve", "services.retrieve", "retrieve", uses_database=True),
    Program("rerank", "services.rerank", "rerank"),
    Program("answer", "services.answer", "answer"),
    Program("gateway", "services.gateway", "gateway"),
    Program("gateway-worker", "services.gateway.worker", None, only_with=SLACK_DOORS),
)


class Processes:
    """Starts, finds and stops the programs of one RECALL_HOME."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._file = home / "stack.json"

    def log_path(self, name: str) -> Path:
        """Where a program's output goes."""
        return self._home / "logs" / f"{name}.log"

    def running(self) -> dict[str, int]:
        """Process ids by program name, of those that still live."""
        return {
            name: entry["pid"]
            for name, entry in self._read().items()
            if _start_time(entry["pid"]) == entry["started"]
        }

    def start(self, program: Program, environ: Mapping[str, str]) -> None:
        """Start a program in a session of its own, so that a terminal's Ctrl-C is ours to pass."""
        log = self.log_path(program.name)
        log.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with log.open("ab") as output:
            started = subprocess.Popen(
                (sys.executable, "-m", program.module),
                env=dict(environ),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        entries = self._read()
        entries[program.name] = {"pid": started.pid, "started": _start_time(started.pid)}
        self._write(entries)

    def stop(self, names: Iterable[str]) -> None:
        """Ask programs to stop, wait for them, and end those that do not."""
        alive = {name: pid for name, pid in self.running().items() if name in set(names)}
        for pid in alive.values():
            _signal(pid, signal.SIGTERM)
        deadline = time.monotonic() + STOP_SECONDS
        while time.monotonic() < deadline and any(map(_start_time, alive.values())):
            time.sleep(0.05)
        for pid in alive.values():
            if _start_time(pid):
                _signal(pid, signal.SIGKILL)
        self._write({n: entry for n, entry in self._read().items() if n not in alive})

    def last_line(self, name: str) -> str:
        """The last line a program printed, for a message to a person."""
        try:
            lines = self.log_path(name).read_text("utf-8", "replace").strip().splitlines()
        except OSError:
            return ""
        return lines[-1] if lines else ""

    def _read(self) -> dict[str, dict[str, int]]:
        try:
            entries: dict[str, dict[str, int]] = json.loads(self._file.read_text("utf-8"))
        except (OSError, ValueError):
            return {}
        return entries

    def _write(self, entries: Mapping[str, object]) -> None:
        self._home.mkdir(mode=0o700, parents=True, exist_ok=True)
        temporary = self._file.with_suffix(".new")
        temporary.write_text(json.dumps(entries), "utf-8")
        temporary.replace(self._file)


def _start_time(pid: int) -> int:
    """Clock ticks after boot at which a process started; 0 when it is gone or a zombie."""
    # A child of ours that ended is collected here, else it would stay a zombie.
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)
    try:
        fields = Path(f"/proc/{pid}/stat").read_text("utf-8").rsplit(")", 1)[1].split()
    except (OSError, IndexError):
        return 0
    return 0 if fields[0] == "Z" else int(fields[19])


def _signal(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)
