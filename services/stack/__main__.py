"""``python -m services.stack up|down|demo [--export PATH]``: what the Makefile's targets run."""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from services.cli.render import import_report
from services.runtime.config import ConfigError
from services.stack.stack import Stack, StackError, demo_workspace_of, stack_of

BEACON = Path(__file__).resolve().parents[2] / "evals" / "beacon"
BEACON_QUESTION = "Which command fixed the local 28P01 Postgres failure?"
INTERRUPTED = 130
# Exit statuses of the command that still leave something to show.
IMPORTED = (0, 1)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; a fault is one line on stderr and status 1."""
    parser = argparse.ArgumentParser(prog="python -m services.stack")
    parser.add_argument("command", choices=("up", "down", "demo"))
    parser.add_argument("--export", default="", help="a Slack export (zip or folder) to show")
    options = parser.parse_args(arguments)
    _on_every_signal(signal.default_int_handler)
    try:
        stack = stack_of()
        if options.command == "down":
            stack.down(_say)
            return 0
        export = _export_of(options.export)
        return _up(stack, export) if options.command == "up" else _demo(stack, export)
    except (StackError, ConfigError) as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return INTERRUPTED


def _up(stack: Stack, export: Path | None) -> int:
    _start(stack)
    status = _load(stack, export)
    _say(f"up: page {_page(stack)}  ·  stop with `make down`")
    return status


def _demo(stack: Stack, export: Path | None) -> int:
    was_running = bool(stack.running())
    _start(stack)
    try:
        status = _load(stack, export)
        if status == 0:
            _show_something(stack, export)
            stops = "leaves it running" if was_running else "stops everything"
            _say(f"\nThe page: {_page(stack)}   (Ctrl-C {stops})")
            _wait_while_running(stack)
        return status
    except KeyboardInterrupt:
        return 0
    finally:
        _on_every_signal(signal.SIG_IGN)
        _say("")
        if not was_running:
            stack.down(_say)


def _start(stack: Stack) -> None:
    """Start the stack; half a stack helps nobody, so a failed start stops what it started."""
    before = stack.running()
    try:
        stack.up(_say)
    except BaseException:
        _on_every_signal(signal.SIG_IGN)
        stack.stop([name for name in stack.running() if name not in before])
        raise


def _load(stack: Stack, export: Path | None) -> int:
    """Import Beacon or the export, and let the page show it. Returns an exit status."""
    if stack.environ.get("OPENAI_API_KEY"):
        _say("OPENAI_API_KEY is set: OpenAI embeds new indexes and writes the answers")
    where = (str(export),) if export else (str(BEACON), "--workspace", "beacon")
    done = _recall(stack, "import", *where, "--json")
    if done.returncode not in IMPORTED or not done.stdout:
        return done.returncode or 1
    report = json.loads(done.stdout)
    _say(import_report(report))
    workspace = report["workspace_id"] if export else demo_workspace_of(stack.environ)
    stack.up(_say, workspace)
    return 0


def _show_something(stack: Stack, export: Path | None) -> None:
    workspace = stack.shown_workspace()
    command = ("catch-up",) if export else ("ask", BEACON_QUESTION)
    _say("\nThe last week of it:\n" if export else f"\nQuestion: {BEACON_QUESTION}\n")
    _say(_recall(stack, *command, "--workspace", workspace).stdout.rstrip())


def _wait_while_running(stack: Stack) -> None:
    """Stay until interrupted, or until somebody else stops the stack."""
    gone: set[str] = set()
    before = set(stack.running())
    while before - gone:
        time.sleep(1)
        ended = before - set(stack.running()) - gone
        gone |= ended
        if ended and before - gone:
            _say(f"{', '.join(sorted(ended))} ended; `make up` starts it again")


def _recall(stack: Stack, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command; its progress and its faults go to the terminal."""
    environ = {**stack.environ, "RECALL_HOME": str(stack.home)}
    return subprocess.run(
        (sys.executable, "-m", "services.cli", *arguments),
        env=environ,
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )


def _export_of(given: str) -> Path | None:
    if not given:
        return None
    export = Path(given).expanduser()
    if not export.exists():
        raise StackError(f"EXPORT={given}: no such file or folder.")
    return export


def _page(stack: Stack) -> str:
    return f"http://127.0.0.1:{stack.port('gateway_http')}/"


def _on_every_signal(handler: signal.Handlers | Callable[..., object]) -> None:
    """Ctrl-C, a closed terminal and a polite kill all end the same way, also in a background job
    whose shell ignores SIGINT."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, handler)


def _say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
