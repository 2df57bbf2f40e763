"""A whole stack of real processes for the end-to-end tests, and the ``recall`` command on it."""

from __future__ import annotations

import itertools
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from services.stack.processes import Processes
from services.stack.stack import Stack

REPOSITORY = Path(__file__).resolve().parents[2]
# Keys of the machine's owner must not make the tests talk to a provider.
_KEYS = ("OPENAI_API_KEY", "OPEN_ROUTER", "DATABASE_URL", "OPENAI_BASE_URL")


@dataclass(frozen=True)
class Result:
    """What one run of the command gave."""

    status: int
    output: str
    errors: str

    @property
    def json(self) -> dict[str, Any]:
        """The output as one JSON object."""
        value: dict[str, Any] = json.loads(self.output)
        return value

    @property
    def lines(self) -> list[dict[str, Any]]:
        """The output as JSON lines."""
        return [json.loads(line) for line in self.output.splitlines()]


@dataclass(frozen=True)
class Running:
    """A running stack."""

    stack: Stack

    @property
    def environ(self) -> dict[str, str]:
        """The environment that finds it."""
        return dict(self.stack.environ)

    def recall(self, *arguments: str, seconds: float = 120) -> Result:
        """Run the command."""
        done = subprocess.run(
            (sys.executable, "-m", "services.cli", *arguments),
            env=self.environ,
            cwd=REPOSITORY,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
        return Result(done.returncode, done.stdout, done.stderr)

    def kill(self, name: str) -> None:
        """kill -9 one process."""
        os.kill(Processes(self.stack.home).running()[name], signal.SIGKILL)

    def up(self) -> None:
        """Start what is missing again."""
        self.stack.up(_quiet)


def free_port_base() -> int:
    """A PORT_BASE whose seven ports are free.

    Below 32,768, where systems begin to take ports for outgoing connections: one of those would
    be taken between this look and the start.
    """
    first = 12_000 + os.getpid() % 200 * 100
    for base in itertools.chain(range(first, 32_000, 10), range(12_000, first, 10)):
        if all(_is_free(base + offset) for offset in range(7)):
            return base
    raise AssertionError("no seven free ports in a row")


def environment(home: Path) -> dict[str, str]:
    """An environment without keys, for a stack of its own."""
    environ = {name: value for name, value in os.environ.items() if name not in _KEYS}
    paths = os.pathsep.join((str(REPOSITORY), str(REPOSITORY / "gen")))
    return environ | {
        "RECALL_HOME": str(home),
        "PORT_BASE": str(free_port_base()),
        "PYTHONPATH": paths,
    }


@pytest.fixture(scope="session")
def beacon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A stack that holds Beacon."""
    home = tmp_path_factory.mktemp("home")
    running = Running(Stack(home, environment(home)))
    try:
        running.up()
        imported = running.recall("import", "evals/beacon", "--workspace", "beacon", seconds=300)
        assert imported.status == 0, imported.errors
        yield running
    finally:
        running.stack.down(_quiet)


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def _quiet(_: str) -> None:
    return None
