"""``python -m services.stack up|down|demo [EXPORT]``: what the Makefile's targets run."""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from services.runtime.config import ConfigError
from services.stack.stack import Stack, StackError, stack_of

BEACON = Path("evals/beacon")
BEACON_QUESTION = "Which command fixed the local 28P01 Postgres failure?"
EXPORT_QUESTION = "What are people working on?"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; a fault is one line on stderr and status 1."""
    parser = argparse.ArgumentParser(prog="python -m services.stack")
    parser.add_argument("command", choices=("up", "down", "demo"))
    parser.add_argument("--export", default="", help="a Slack export (zip or folder) to show")
    options = parser.parse_args(arguments)
    try:
        return _run(options.command, options.export)
    except (StackError, ConfigError) as error:
        print(error, file=sys.stderr)
        return 1


def _run(command: str, export: str) -> int:
    stack = stack_of()
    if command == "down":
        stack.down(_say)
        return 0
    if export and not Path(export).exists():
        raise StackError(f"EXPORT={export}: no such file or folder.")
    workspace = _workspace_of(export)
    stack.up(_say, workspace if command == "demo" else "")
    if command == "up":
        _say(f"up: page http://127.0.0.1:{stack.port('gateway_http')}/  ·  stop with `make down`")
        return 0
    return _demo(stack, workspace, export)


def _demo(stack: Stack, workspace: str, export: str) -> int:
    # From here on Ctrl-C means: stop everything, in order.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        path = export or str(BEACON)
        imported = _recall(stack, "import", path, "--workspace", workspace)
        if imported == 0:
            question = EXPORT_QUESTION if export else BEACON_QUESTION
            _say(f"\nQuestion: {question}\n")
            _recall(stack, "ask", question, "--workspace", workspace)
        _say(f"\nThe page: http://127.0.0.1:{stack.port('gateway_http')}/   (Ctrl-C stops all)")
        if imported == 0:
            signal.pause()
        return imported
    except KeyboardInterrupt:
        return 0
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        _say("")
        stack.down(_say)


def _recall(stack: Stack, *arguments: str) -> int:
    environ = {**stack.environ, "RECALL_HOME": str(stack.home)}
    return subprocess.run(
        (sys.executable, "-m", "services.cli", *arguments), env=environ, check=False
    ).returncode


def _workspace_of(export: str) -> str:
    return Path(export).resolve().stem if export else "beacon"


def _say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
