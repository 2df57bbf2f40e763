"""``python -m tests.faults.kill --kills 200``: what ``make faults-kill`` runs.

A stack of processes works under mixed load while its processes and its database are killed at
random moments and started again. At the end everything must be as if nobody had killed anything.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path
from random import Random

from services.runtime.config import ConfigError
from services.stack.stack import StackError
from tests.faults.killer import Killer
from tests.faults.left_behind import processes_of
from tests.faults.load import Load
from tests.faults.outcome import Outcome
from tests.faults.rows import unfinished
from tests.faults.searcher import Searcher
from tests.faults.stage import Say, Stage, staged
from tests.faults.verdict import Crew, Rest, verdict
from tests.slack_stack import NotInstalledError

PORT_BASE = 7900
DRAIN_SECONDS = 240.0
# Slack gives an event up after six minutes; nobody kills for that long.
LAST_TRIES = 5
POLL_SECONDS = 0.5
INTERRUPTED = 130


def main() -> int:
    """Run, print the table; status 1 when a promise was broken."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.kill")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--port-base", type=int, default=PORT_BASE)
    parser.add_argument("--keep", action="store_true", help="keep the home with its logs")
    chosen = parser.parse_args()
    home = Path(tempfile.mkdtemp(prefix="recall-faults-"))
    try:
        outcome = asyncio.run(_interruptible(home, chosen))
    except (StackError, ConfigError, NotInstalledError) as error:
        print(f"{error} (seed {chosen.seed})", file=sys.stderr)
        return 1
    except asyncio.CancelledError:
        return INTERRUPTED
    finally:
        if chosen.keep:
            _say(f"kept {home}")
        else:
            shutil.rmtree(home, ignore_errors=True)
    print("\n".join(outcome.lines()))
    return 1 if outcome.broken else 0


async def _interruptible(home: Path, chosen: argparse.Namespace) -> Outcome:
    """A run whose stack is stopped whoever ends it."""
    running = asyncio.current_task()
    assert running
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, running.cancel)
    return await run(home, chosen.port_base, chosen.kills, chosen.seed, _say)


async def run(home: Path, port_base: int, kills: int, seed: int, say: Say) -> Outcome:
    """A whole run on a stack of its own. Raises StackError and NotInstalledError."""
    async with staged(home, port_base, say) as stage:
        load = Load(stage, Random(seed))
        crew = Crew(stage, load, Searcher(stage, load, Random(seed + 2)))
        killer = Killer(stage, Random(seed + 1), say)
        await load.begin()
        await _drained(stage)
        begin = time.monotonic()
        await _under_load(crew, killer, kills)
        seconds = time.monotonic() - begin
        say("waiting for the last events and the queue")
        await _all_delivered(stage)
        rest = Rest(await _drained(stage), await asyncio.to_thread(unfinished, stage))
        await stage.control.settle()
        outcome = verdict(crew, killer, rest)
    outcome.findings["no process left behind"] = processes_of(home)
    outcome.title = f"{killer.count} kills in {seconds:.0f} s under load (seed {seed})"
    return outcome


async def _under_load(crew: Crew, killer: Killer, kills: int) -> None:
    over = asyncio.Event()
    beside = [asyncio.create_task(each.go_on(over)) for each in (crew.load, crew.searcher)]
    try:
        await killer.kill(kills)
    finally:
        over.set()
        await asyncio.gather(*beside)


async def _all_delivered(stage: Stage) -> None:
    """Send once more, as Slack would have, what was given up after its shortened waits."""
    await stage.control.settle()
    for _ in range(LAST_TRIES):
        given_up = [d for d in stage.control.deliveries() if d.state == "given up"]
        for delivery in given_up:
            stage.control.deliver_again(delivery.event_id, retry_number=3)
        await stage.control.settle()
        for delivery in given_up:
            delivery.state = "acknowledged" if delivery.attempts[-1] == 200 else "given up"


async def _drained(stage: Stage) -> float | None:
    """Seconds until no job was left; None when that never came."""
    begin = time.monotonic()
    while await asyncio.to_thread(unfinished, stage):
        if time.monotonic() - begin > DRAIN_SECONDS:
            return None
        await asyncio.sleep(POLL_SECONDS)
    return time.monotonic() - begin


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
